/** `[ledger] connection`: the database and its location. */

export type Connection =
  | { readonly dialect: 'sqlite'; readonly file: string }
  | { readonly dialect: 'postgresql'; readonly url: string };

export type Dialect = Connection['dialect'];

export const EXPECTED_CONNECTION = 'sqlite:///path/of/a/file or postgresql://user:password@host/database';

/**
 * `undefined` = neither. `sqlite:////var/…`, as SQLAlchemy writes it, is the same file as `sqlite:///var/…`.
 */
export function parseConnection(text: string): Connection | undefined {
  if (!URL.canParse(text)) {
    return undefined;
  }
  const url = new URL(text);
  if (url.protocol === 'sqlite:') {
    const path = text.slice('sqlite://'.length).replace(/^\/+/, '/');
    const isFile =
      text.startsWith('sqlite:///') && !/[?#]/.test(path) && path.length > 1 && !path.endsWith('/');
    return isFile ? { dialect: 'sqlite', file: path } : undefined;
  }
  if (url.protocol === 'postgresql:' || url.protocol === 'postgres:') {
    return url.hostname !== '' && url.pathname.length > 1 ? { dialect: 'postgresql', url: text } : undefined;
  }
  return undefined;
}

/** The location of the ledger, safe to show: without user, password and parameters. */
export function describeConnection(connection: Connection): string {
  if (connection.dialect === 'sqlite') {
    return connection.file;
  }
  const { host, pathname } = new URL(connection.url);
  return `postgresql://${host}${pathname}`;
}
