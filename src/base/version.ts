import { readFileSync } from 'node:fs';

/** The version of package.json, which is beside `src/`, or beside `dist`; `unknown` when neither exists. */
export function packageVersion(): string {
  for (const path of ['../../package.json', '../../../package.json']) {
    try {
      const { version } = JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')) as {
        version: string;
      };
      return version;
    } catch {
      // Not there: try the other location.
    }
  }
  return 'unknown';
}
