/** The name and password of a host in `.netrc`, as SkyPilot's HTTP client finds them. */
import { homedir } from 'node:os';
import { join } from 'node:path';
import { readTextFile } from '../config/read-file.ts';

export interface Login {
  readonly name: string;
  readonly password: string;
}

const MAX_BYTES = 1_048_576;

/** From `$NETRC`, else `~/.netrc`, else `~/_netrc`. Like SkyPilot's client, ignores a file that it cannot read. */
export function netrcLogin(host: string): Login | undefined {
  const named = process.env.NETRC;
  const files = named ? [named] : ['.netrc', '_netrc'].map((name) => join(homedir(), name));
  for (const file of files) {
    try {
      return loginIn(readTextFile(file, MAX_BYTES), host);
    } catch {
      // The next one, if any.
    }
  }
  return undefined;
}

/** The entry of the host, otherwise `default`. */
export function loginIn(text: string, host: string): Login | undefined {
  let found: Login | undefined;
  let fallback: Login | undefined;
  let entry: { host: string | null; login: string; account: string; password: string } | undefined;
  const end = () => {
    if (entry !== undefined) {
      const login = { name: entry.login === '' ? entry.account : entry.login, password: entry.password };
      if (entry.host === host) {
        found = login;
      } else if (entry.host === null) {
        fallback = login;
      }
    }
  };
  const tokens = tokensOf(text);
  for (let token = tokens.shift(); token !== undefined; token = tokens.shift()) {
    switch (token) {
      case 'machine':
      case 'default':
        end();
        entry = {
          ...{ host: token === 'default' ? null : (tokens.shift() ?? '') },
          ...{ login: '', account: '', password: '' },
        };
        break;
      case 'login':
      case 'user':
        entry = entry && { ...entry, login: tokens.shift() ?? '' };
        break;
      case 'account':
      case 'password':
        entry = entry && { ...entry, [token]: tokens.shift() ?? '' };
        break;
    }
  }
  end();
  return found ?? fallback;
}

/** Words and quoted words. Comments take a line, macros all lines to an empty one. */
function tokensOf(text: string): string[] {
  const withoutMacros = text.replace(/^\s*macdef\b[^\n]*\n(?:[^\n]+\n)*/gm, '');
  return withoutMacros.split('\n').flatMap((line) => {
    const [before = ''] = line.split(/(?:^|\s)#/, 1);
    // A password may begin with `#`.
    const used = /\b(?:password|login|user|account)\s*$/.test(before) ? line : before;
    return [...used.matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/g)].map(([, quoted, word]) =>
      (quoted ?? word ?? '').replace(/\\(.)/g, '$1'),
    );
  });
}
