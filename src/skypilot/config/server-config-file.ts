import { stat } from 'node:fs/promises';
import { ConfigurationError } from '../../base/errors.ts';
import type { Mapping } from '../../yaml/tree.ts';
import { readConfigFile } from './config-file.ts';

/**
 * The configuration file of SkyPilot's server, for policies that compare requests with it. Read as SkyPilot reads it
 * (YAML 1.1), and again whenever it changes.
 */
export class ServerConfigFile {
  readonly #path: string;
  #tree: Mapping;
  /** Of the file when it was last read; `undefined` until the first request. */
  #state: string | undefined;

  /**
   * Reads the file.
   *
   * @throws ConfigurationError with file and line if it cannot be read, is not one mapping, or names a database
   * (`db`): SkyPilot then keeps its configuration there
   */
  constructor(path: string) {
    this.#path = path;
    this.#tree = treeOf(path);
  }

  /** The configuration. Treat it as read-only. @throws ConfigurationError as the constructor does */
  async current(): Promise<Mapping> {
    const state = await stateOf(this.#path);
    if (state === undefined || state !== this.#state) {
      this.#state = undefined;
      this.#tree = treeOf(this.#path);
      this.#state = state;
    }
    return this.#tree;
  }
}

function treeOf(path: string): Mapping {
  const { tree, originOf } = readConfigFile('server', path);
  if (tree.db !== undefined && tree.db !== null) {
    const message =
      'SkyPilot keeps its configuration in the database that db names; name a file with that configuration, without db';
    throw new ConfigurationError([{ severity: 'error', origin: originOf(['db']), message }]);
  }
  return tree;
}

/** Changes with the file, also where a symbolic link is swapped. */
async function stateOf(path: string): Promise<string | undefined> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join();
  } catch {
    return undefined;
  }
}
