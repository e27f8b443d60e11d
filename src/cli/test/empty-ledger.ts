/** Ledgers without entries. Making the tables takes as long as many cases: it is done once, and the file is copied. */
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export class EmptyLedgers {
  #made: Promise<string> | undefined;

  /** Puts one at this path. */
  async at(file: string): Promise<void> {
    this.#made ??= make();
    copyFileSync(join(await this.#made, 'ledger.db'), file);
  }

  async close(): Promise<void> {
    const folder = await this.#made?.catch(() => undefined);
    if (folder !== undefined) {
      rmSync(folder, { recursive: true, force: true });
    }
  }
}

async function make(): Promise<string> {
  const { upgradeLedger } = await import('../../ledger/upgrade.ts');
  const folder = mkdtempSync(join(tmpdir(), 'blazar-enforcement-test-'));
  try {
    const connection = `sqlite://${join(folder, 'ledger.db')}`;
    await upgradeLedger({ connection, commit: 'check', timeout: 10, pool_size: 1 });
    return folder;
  } catch (thrown) {
    rmSync(folder, { recursive: true, force: true });
    throw thrown;
  }
}
