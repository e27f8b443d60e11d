/** Checks of `[keystone]` that its schema cannot express: combinations of options, and the named files. */
import { X509Certificate } from 'node:crypto';
import { errorText, type Problem } from '../base/errors.ts';
import { readTextFile } from '../config/read-file.ts';
import { ALTERNATIVES, effectiveOptions, identityUrl, secretOf } from './effective-options.ts';
import type { KeystoneOptions } from './keystone-options.ts';

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
  if (cafile !== undefined) {
    check('cafile', () => readAuthorities(cafile));
  }
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

/** OpenSSL skips unreadable certificates, such as the last one of a truncated file. */
function readAuthorities(file: string): void {
  const parts = readTextFile(file)
    .split(/^(?=-----BEGIN )/m)
    .filter((part) => part.startsWith('-----BEGIN '));
  if (parts.length === 0) {
    throw new Error(`${file} holds no certificate in PEM`);
  }
  for (const [index, part] of parts.entries()) {
    try {
      new X509Certificate(part);
    } catch {
      throw new Error(`${file}: number ${index + 1} is not a certificate in PEM`);
    }
  }
}

function error(option: Name, message: string): Problem {
  return problem('error', option, message);
}

function problem(severity: Problem['severity'], option: Name, message: string): Problem {
  return { severity, section: 'keystone', option, message };
}
