/** A clock that a test sets while its process runs, by libfaketime if installed. */
import { existsSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from './filter-folder.ts';
import { skipAloud } from './peers.ts';

const LIBRARIES = ['x86_64-linux-gnu', 'aarch64-linux-gnu'].map(
  (machine) => `/usr/lib/${machine}/faketime/libfaketimeMT.so.1`,
);

/** `undefined` = not installed, which is logged once on standard error. */
export function clockLibrary(): string | undefined {
  const library = process.env.FAKETIME_LIBRARY ?? LIBRARIES.find((one) => existsSync(one));
  if (library === undefined) {
    skipAloud('FAKETIME_LIBRARY', 'libfaketime is not installed');
  }
  return library;
}

/** Python 3.11 sleeps until an absolute time: libfaketime 0.9.10 refuses that with a real monotonic clock. */
const SLEEP = `import select, time
time.sleep = lambda seconds: select.select([], [], [], seconds) and None
`;

export class SetClock {
  /** For the process's environment. Does not affect its monotonic clock. */
  readonly environment: Readonly<Record<string, string>>;
  readonly #file: string;

  /** `ahead`: in seconds. */
  constructor(library: string, ahead: number) {
    const folder = temporaryFolder();
    this.#file = join(folder, 'clock');
    this.set(ahead);
    writeFileSync(join(folder, 'sitecustomize.py'), SLEEP);
    this.environment = {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: this.#file,
      FAKETIME_CACHE_DURATION: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      DONT_FAKE_MONOTONIC: '1',
      FAKETIME_DONT_RESET: '1',
      PYTHONPATH: folder,
    };
  }

  /** The process sees it within a second. */
  set(ahead: number): void {
    writeFileSync(`${this.#file}.new`, `${ahead < 0 ? '-' : '+'}${Math.abs(ahead)}s\n`);
    renameSync(`${this.#file}.new`, this.#file);
  }
}
