/** The effective options of `[keystone]`, and their results: the URL, the secrets, the token request. */

import { errorText, type Problem } from '../base/errors.ts';
import { mistakeInAuthorities } from '../config/pem.ts';

import { readTextFile } from '../config/read-file.ts';
import type { HttpClientOptions } from '../http/contract.ts';
import type { LookupContext } from './cloud.ts';
import { KeystoneError } from './contract.ts';
import type { KeystoneOptions } from './keystone-options.ts';

/** Options of which at most one may be set. */
export const ALTERNATIVES: readonly (readonly [keyof KeystoneOptions, keyof KeystoneOptions])[] = [
  ['password', 'password_file'],
  ['application_credential_secret', 'application_credential_secret_file'],
  ['user_domain_name', 'user_domain_id'],
  ['project_name', 'project_id'],
  ['project_domain_name', 'project_domain_id'],
];

interface EffectiveOptions {
  readonly options: KeystoneOptions;
  /** Source of the options that are not in `[keystone]`; `undefined` without `cloud`. */
  readonly source?: string;
  readonly warnings: readonly string[];
}

/**
 * The options, completed by those of `cloud`; `[keystone]` itself wins. Without `cloud` nothing is read:
 * neither variables nor files in the working directory or home of the process. The service and the commands
 * all use this. @throws KeystoneError
 */
export async function effectiveOptions(
  options: KeystoneOptions,
  lookup: LookupContext = { environment: process.env, folder: process.cwd() },
): Promise<EffectiveOptions> {
  if (options.cloud === undefined) {
    return { options, warnings: [] };
  }
  const { cloudNamed } = await import('./cloud.ts');
  const { options: below, source, warnings } = await cloudNamed(options.cloud, options.region_name, lookup);
  const set = new Set(
    (Object.keys(options) as (keyof KeystoneOptions)[]).filter((name) => options[name] !== undefined),
  );
  const replaced = ALTERNATIVES.filter((names) => names.some((name) => set.has(name))).flat();
  const kept = Object.entries(below).filter(
    ([name, value]) => value !== undefined && !replaced.includes(name as keyof KeystoneOptions),
  );
  const own = Object.entries(options).filter(([, value]) => value !== undefined);
  const effective = { ...Object.fromEntries(kept), ...Object.fromEntries(own) } as KeystoneOptions;
  if (effective.auth_url === undefined) {
    throw new KeystoneError('configuration', `[keystone] cloud: ${source}: there is no auth_url`);
  }
  return { options: effective, source, warnings };
}

const MAX_SECRET_BYTES = 16_384;

/**
 * The body of a token request. Reads secret files again, so that a changed password is used from the next
 * token on.
 *
 * @throws KeystoneError
 */
export function tokenRequest(options: KeystoneOptions): string {
  const { application_credential_id: id } = options;
  if (id !== undefined) {
    const secret = secretOf(options, 'application_credential_secret');
    const identity = { methods: ['application_credential'], application_credential: { id, secret } };
    return JSON.stringify({ auth: { identity } });
  }
  const password = secretOf(options, 'password');
  const user = { name: options.username, domain: domainOf(options, 'user'), password };
  const project =
    options.project_id === undefined
      ? { name: options.project_name, domain: domainOf(options, 'project') }
      : { id: options.project_id };
  const identity = { methods: ['password'], password: { user } };
  return JSON.stringify({ auth: { identity, scope: { project } } });
}

function domainOf(options: KeystoneOptions, whose: 'user' | 'project'): { id: string } | { name: string } {
  const id = options[`${whose}_domain_id`];
  return id === undefined ? { name: options[`${whose}_domain_name`] ?? 'Default' } : { id };
}

/** The text of a secret, without the line break at the end of its file. @throws KeystoneError */
export function secretOf(
  options: KeystoneOptions,
  name: 'password' | 'application_credential_secret',
): string {
  const file = options[`${name}_file`];
  if (file === undefined) {
    return options[name] ?? '';
  }
  let text: string;
  try {
    text = readTextFile(file, MAX_SECRET_BYTES).replace(/\r?\n$/, '');
  } catch (thrown) {
    throw new KeystoneError('configuration', `[keystone] ${name}_file ${file}: ${errorText(thrown)}`);
  }
  if (text === '' || /[\r\n]/.test(text)) {
    // An empty file is probably being written.
    const message = `[keystone] ${name}_file ${file}: expected one line with the secret`;
    throw new KeystoneError('configuration', message);
  }
  return text;
}

/** Keystone v3 issues tokens below this path. */
export const TOKENS_PATH = '/auth/tokens';

/**
 * The root of Keystone's version 3, without a slash at its end: `/v3` is appended unless `auth_url` ends in
 * it. Throws an `Error` with the mistake in the address.
 */
export function identityUrl(authUrl: string): string {
  const url = URL.canParse(authUrl) ? new URL(authUrl) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new Error('expected an http or https URL, such as https://keystone.example.org:5000/v3');
  }
  if (url.username !== '' || url.password !== '') {
    throw new Error('expected an address without a user name and a password: these are options of their own');
  }
  if (url.search !== '' || url.hash !== '') {
    throw new Error('expected an address without "?" and "#"');
  }
  const path = url.pathname.replace(/\/+$/, '');
  if (/\/v2(\.\d+)?$/.test(path)) {
    throw new Error(`expected the address of version 3, got ${path}: version 2 of Keystone is not supported`);
  }
  if (path.endsWith(TOKENS_PATH)) {
    throw new Error(`expected the address without ${TOKENS_PATH}`);
  }
  return `${url.origin}${path}${path.endsWith('/v3') ? '' : '/v3'}`;
}

export function clientOptions({ cafile, timeout }: KeystoneOptions): HttpClientOptions {
  return {
    timeout,
    connectRetries: 1,
    breakerFailures: 5,
    breakerCooldown: 2,
    tls: cafile === undefined ? undefined : { ca: Buffer.from(readTextFile(cafile)) },
  };
}

type Name = keyof KeystoneOptions;

const USER: readonly Name[] = ['username', 'password', 'password_file', 'user_domain_name', 'user_domain_id'];
const PROJECT: readonly Name[] = ['project_name', 'project_id', 'project_domain_name', 'project_domain_id'];
const CREDENTIAL: readonly Name[] = [
  'application_credential_id',
  'application_credential_secret',
  'application_credential_secret_file',
];
/** Each problem has an option that is set, so that its line is reported. */
export async function keystoneProblems(options: KeystoneOptions): Promise<readonly Problem[]> {
  const firstOf = (names: readonly Name[]) => names.find((name) => options[name] !== undefined);
  const twice = ALTERNATIVES.filter((pair) => pair.every((name) => options[name] !== undefined));
  if (twice.length > 0) {
    return twice.map(([one, other]) => error(other, `expected ${one} or ${other}, got both`));
  }
  const start = firstOf(['cloud', 'auth_url']);
  if (start === undefined) {
    const alone = firstOf([...USER, ...PROJECT, ...CREDENTIAL, 'region_name', 'cafile']);
    return alone === undefined
      ? []
      : [error(alone, 'has no effect without auth_url or cloud: set one of them')];
  }
  try {
    const { options: effective, source, warnings } = await effectiveOptions(options);
    const problems = problemsOf(effective).map(({ option, message }) =>
      options[option] === undefined && source !== undefined
        ? error('cloud', `${source}: ${option}: ${message}`)
        : error(options[option] === undefined ? start : option, message),
    );
    return [...problems, ...warnings.map((message) => problem('warning', 'cloud', message))];
  } catch (thrown) {
    return [error(start, errorText(thrown).replace(/^\[keystone\] cloud: /, ''))];
  }
}

function problemsOf(options: KeystoneOptions): { option: Name; message: string }[] {
  const { application_credential_id: credential, auth_url: authUrl = '', cafile } = options;
  const isSet = (name: Name) => options[name] !== undefined;
  const secret = secretOption(options, 'application_credential_secret');
  const password = secretOption(options, 'password');
  const found: { option: Name; message: string }[] = [];
  const add = (option: Name, message: string) => found.push({ option, message });
  const check = (option: Name, read: () => unknown) => {
    try {
      read();
    } catch (thrown) {
      add(option, errorText(thrown).replace(/^\[keystone\] \w+ /, ''));
    }
  };
  check('auth_url', () => identityUrl(authUrl));
  check('cafile', () => {
    const mistake = cafile === undefined ? undefined : mistakeInAuthorities(readTextFile(cafile), cafile);
    if (mistake !== undefined) {
      add('cafile', mistake);
    }
  });
  if (CREDENTIAL.some(isSet)) {
    const other = [...USER, ...PROJECT].find(isSet);
    if (other !== undefined) {
      add(other, 'does not belong to an application credential, which has its own user and project');
    } else if (credential === undefined) {
      add(secret ?? 'application_credential_secret', missing('application_credential_id'));
    } else if (secret === undefined) {
      const either = 'application_credential_secret or application_credential_secret_file';
      add('application_credential_id', missing(either));
    } else {
      check(secret, () => secretOf(options, 'application_credential_secret'));
    }
    return found;
  }
  if (options.username === undefined) {
    const all = 'username and password, or application_credential_id and its secret,';
    add(password ?? 'auth_url', missing(password ? 'username' : all));
  } else if (password === undefined) {
    add('username', missing('password or password_file'));
  } else {
    check(password, () => secretOf(options, 'password'));
    if (!isSet('project_name') && !isSet('project_id')) {
      add('username', missing('project_name or project_id'));
    }
  }
  return found;
}

function secretOption(
  options: KeystoneOptions,
  name: 'password' | 'application_credential_secret',
): Name | undefined {
  return ([name, `${name}_file`] as const).find((one) => options[one] !== undefined);
}

function missing(what: string): string {
  return `expected ${what} as well, got none`;
}

function error(option: Name, message: string): Problem {
  return problem('error', option, message);
}

function problem(severity: Problem['severity'], option: Name, message: string): Problem {
  return { severity, section: 'keystone', option, message };
}
