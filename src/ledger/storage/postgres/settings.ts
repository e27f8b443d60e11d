/** Parses the URL of a PostgreSQL database like libpq. The driver itself parses some of it differently. */
import type { ConnectionOptions } from 'node:tls';
import type { PoolConfig } from 'pg';
import { errorText } from '../../../base/errors.ts';
import { mistakeInAuthorities } from '../../../config/pem.ts';
import { readTextFile } from '../../../config/read-file.ts';

/** How soon the server notices a lost client, in milliseconds. Needs PostgreSQL 14. */
const LOST_AFTER = 1000;

const SSL_MODES = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'] as const;
type SslMode = (typeof SSL_MODES)[number];

/** The supported parameters of libpq. */
const PARAMETERS = [
  'application_name',
  'connect_timeout',
  'dbname',
  'host',
  'options',
  'password',
  'port',
  'sslcert',
  'sslkey',
  'sslmode',
  'sslrootcert',
  'user',
] as const;

/** The driver sends and reads UTF-8, and a warning tells that a commit is not on the standby. */
const FIXED: readonly string[] = ['client_encoding', 'client_min_messages'];

/** Name and value. */
export type Setting = readonly [name: string, value: string];

export interface PostgresPlace {
  readonly config: PoolConfig;
  /** Settings for each transaction: a pooler does not keep session settings. */
  readonly settings: readonly Setting[];
  /** Only the settings from the URL. */
  readonly given: readonly Setting[];
  /** TLS options to try, or `false` for none; the next one if the server refuses the previous. */
  readonly attempts: readonly (ConnectionOptions | false)[];
}

/** Throws an `Error` whose message contains no value of the URL. */
export function postgresPlace(url: string): PostgresPlace {
  const { hostname, port, username, password, pathname, searchParams } = new URL(url);
  for (const name of searchParams.keys()) {
    if (!PARAMETERS.some((known) => known === name)) {
      throw new Error(`the parameter ${name} is not one of ${PARAMETERS.join(', ')}`);
    }
  }
  const given = (name: (typeof PARAMETERS)[number]) => searchParams.get(name) || undefined;
  const portText = given('port') ?? (port || '5432');
  // The driver would never answer for a larger one, and takes 0 for 5432.
  if (!/^\d{1,5}$/.test(portText) || Number(portText) === 0 || Number(portText) > 65_535) {
    throw new Error('the parameter port is not a port');
  }
  const seconds = given('connect_timeout');
  if (seconds !== undefined && !/^\d{1,6}$/.test(seconds)) {
    throw new Error('the parameter connect_timeout is not a whole number of seconds');
  }
  const host = given('host') ?? decoded(hostname).replace(/^\[(.+)\]$/, '$1');
  // libpq would try each host; the driver takes the list as one name, which does not exist.
  if (host.includes(',')) {
    throw new Error(
      'several hosts are not supported: name one address, which leads to the server that can be written',
    );
  }
  const named = settingsIn(given('options') ?? '');
  return {
    config: {
      host,
      port: Number(portText),
      user: given('user') ?? (decoded(username) || undefined),
      password: given('password') ?? (decoded(password) || undefined),
      database: given('dbname') ?? decoded(pathname.slice(1)),
      application_name: given('application_name') ?? 'blazar-enforcement',
      ...(seconds === undefined || seconds === '0'
        ? {}
        : { connectionTimeoutMillis: Number(seconds) * 1000 }),
    },
    settings: [
      // An abandoned connection may still wait for the lock of a project: the server checks whether its
      // client is alive.
      ['client_connection_check_interval', String(LOST_AFTER)],
      // Whatever the default of the role or the database is.
      ['client_min_messages', 'warning'],
      ...named,
    ],
    given: named,
    attempts: attemptsOf(given('sslmode'), {
      ca: given('sslrootcert'),
      cert: given('sslcert'),
      key: given('sslkey'),
    }),
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Error('a % in the user, password, host or database of the URL is written %25');
  }
}

/** `-c name=value` and `--name=value`; a backslash before a space keeps it. Source: PostgreSQL docs, "postgres". */
function settingsIn(options: string): Setting[] {
  const words = options.trim().match(/(?:\\[\s\S]|[^\s\\])+/g) ?? [];
  const settings: Setting[] = [];
  for (let next = words.shift(); next !== undefined; next = words.shift()) {
    const text = next === '-c' ? words.shift() : /^(?:-c|--)/.test(next) ? next.slice(2) : undefined;
    const [, name, value] = /^([A-Za-z_][\w.-]*)=([\s\S]*)$/.exec(text ?? '') ?? [];
    if (name === undefined || value === undefined) {
      throw new Error('the parameter options is not a list of -c name=value');
    }
    const setting = name.replaceAll('-', '_');
    if (FIXED.includes(setting.toLowerCase())) {
      throw new Error(`the parameter options cannot set ${setting}`);
    }
    settings.push([setting, value.replaceAll(/\\([\s\S])/g, '$1')]);
  }
  return settings;
}

interface Files {
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

/** Source: PostgreSQL docs, "SSL Support" of libpq. Files in the home folder are ignored: only the configuration counts. */
function attemptsOf(text: string | undefined, files: Files): (ConnectionOptions | false)[] {
  const isSystem = files.ca === 'system';
  const mode = text ?? (isSystem ? 'verify-full' : 'prefer');
  if (!isSslMode(mode)) {
    throw new Error(`sslmode is not one of ${SSL_MODES.join(', ')}`);
  }
  if (isSystem && mode !== 'verify-full') {
    throw new Error('sslrootcert=system needs sslmode=verify-full');
  }
  if (mode.startsWith('verify') && files.ca === undefined) {
    throw new Error(
      `sslmode=${mode} needs sslrootcert: the file of the authority, or system with verify-full for those of this machine`,
    );
  }
  if (mode === 'disable') {
    return [false];
  }
  const ca = isSystem ? undefined : fileOf('sslrootcert', files.ca);
  const mistake = ca === undefined ? undefined : mistakeInAuthorities(ca, 'the file of sslrootcert');
  if (mistake !== undefined) {
    throw new Error(mistake);
  }
  const own = { cert: fileOf('sslcert', files.cert), key: fileOf('sslkey', files.key) };
  const verifiesName = mode === 'verify-full';
  // With a CA file, `require` means `verify-ca`.
  const verifies = verifiesName || mode === 'verify-ca' || (mode === 'require' && ca !== undefined);
  const tls: ConnectionOptions = {
    ...own,
    ...(verifies ? { ca } : {}),
    rejectUnauthorized: verifies,
    ...(verifies && !verifiesName ? { checkServerIdentity: () => undefined } : {}),
  };
  return mode === 'allow' ? [false, tls] : mode === 'prefer' ? [tls, false] : [tls];
}

function isSslMode(text: string): text is SslMode {
  return SSL_MODES.some((mode) => mode === text);
}

function fileOf(parameter: string, file: string | undefined): string | undefined {
  try {
    return file === undefined ? undefined : readTextFile(file);
  } catch (thrown) {
    throw new Error(`${parameter} cannot be read: ${errorText(thrown)}`);
  }
}
