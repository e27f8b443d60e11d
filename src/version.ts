import { readFileSync } from 'node:fs';

/** The version in package.json: beside `src/` here, one folder further up where it is built. `unknown` in neither. */
export function packageVersion(): string {
  for (const path of ['../package.json', '../../package.json']) {
    try {
      const { version } = JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')) as {
        version: string;
      };
      return version;
    } catch {
      // The other place, then.
    }
  }
  return 'unknown';
}
