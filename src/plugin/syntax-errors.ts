/** Where a syntax error is. Node says so only if nobody catches the error. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** In milliseconds, for one file. */
const TIMEOUT = 5000;
const MAX_FILES = 20;

/** `FILE:LINE` of a syntax error in one of these files; `undefined` if it cannot be told. */
export async function syntaxErrorPlace(
  error: SyntaxError,
  files: readonly string[],
): Promise<string | undefined> {
  const place = placeInStack(error);
  if (place !== undefined) {
    return place;
  }
  for (const file of files.filter((name) => /\.[cm]?js$/.test(name)).slice(0, MAX_FILES)) {
    const line = await lineOf(error, file);
    if (line !== undefined) {
      return `${file}:${line}`;
    }
  }
  return undefined;
}

/** Some syntax errors name the place in front of their stack: an import of a name that is not exported. */
function placeInStack({ stack = '' }: SyntaxError): string | undefined {
  const [, url, path, line] = /^(?:(file:\/\/\S+)|(\/.+)):(\d+)\n/.exec(stack) ?? [];
  const file = url === undefined ? path : fileURLToPath(url);
  return file === undefined ? undefined : `${file}:${line}`;
}

/** Checks the file in another process, without running it. */
function lineOf({ message }: SyntaxError, file: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const check = execFile(
      process.execPath,
      ['--input-type=module', '--check', '-'],
      { timeout: TIMEOUT },
      (_, __, stderr) => {
        const isSame = stderr.includes(`\nSyntaxError: ${message}\n`);
        resolve(isSame ? /^\[stdin\]:(\d+)$/m.exec(stderr)?.[1] : undefined);
      },
    );
    check.stdin?.on('error', () => {});
    check.stdin?.end(contentOf(file));
  });
}

function contentOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
