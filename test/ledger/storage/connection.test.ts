import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { describeConnection, parseConnection } from '../../../src/ledger/storage/connection.ts';

describe('parseConnection', () => {
  it.each([
    ['sqlite:///var/lib/ledger.db', '/var/lib/ledger.db'],
    ['sqlite:////var/lib/ledger.db', '/var/lib/ledger.db'],
    ['sqlite:///x', '/x'],
    ['sqlite:///with space/ünï%20code', '/with space/ünï%20code'],
  ])('reads the file of %s', (text, file) => {
    expect(parseConnection(text)).toEqual({ dialect: 'sqlite', file });
  });

  it.each([
    'postgresql://host/database',
    'postgres://user:password@host:5433/database?sslmode=require',
    'postgresql://user:p%40ss@[::1]:5432/database',
  ])('accepts %s for PostgreSQL as it is', (url) => {
    expect(parseConnection(url)).toEqual({ dialect: 'postgresql', url });
  });

  it.each([
    '',
    'ledger.db',
    '/var/lib/ledger.db',
    'sqlite:',
    'sqlite://',
    'sqlite:///',
    'sqlite:////',
    'sqlite://:memory:',
    'sqlite://host/ledger.db',
    'sqlite:relative.db',
    'sqlite:///a/folder/',
    'sqlite:///ledger.db?mode=memory',
    'sqlite:///ledger.db#part',
    'postgresql://',
    'postgresql:///database',
    'postgresql://host',
    'postgresql://host/',
    'postgresql:database',
    'mysql://host/database',
    'file:///var/lib/ledger.db',
    'javascript:alert(1)',
  ])('refuses %j', (text) => {
    expect(parseConnection(text)).toBeUndefined();
  });

  it('never throws, whatever the text', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.webUrl(),
          fc.string().map((path) => `sqlite:///${path}`),
        ),
        (text) => {
          const connection = parseConnection(text);
          expect(connection === undefined || describeConnection(connection).length > 0).toBe(true);
        },
      ),
    );
  });
});

describe('describeConnection', () => {
  it('is described without user, password and parameters', () => {
    const connection = parseConnection('postgres://user:s3cret@host:5433/database?sslpassword=s3cret#s3cret');
    expect(connection && describeConnection(connection)).toBe('postgresql://host:5433/database');
  });

  it('never shows a secret', () => {
    const secret = fc.stringMatching(/^[A-Za-z0-9!$&'()*+,;=%~-]{6,30}$/).map((text) => `s3cret${text}`);
    fc.assert(
      fc.property(secret, fc.constantFrom('host', 'host:1', '[::1]', 'ünïcode.example'), (written, host) => {
        for (const userinfo of [
          `u:${written}`,
          written,
          `:${written}`,
          `${written}:${written}`,
          `u:${written}@x`,
        ]) {
          const connection = parseConnection(`postgresql://${userinfo}@${host}/db?password=${written}`);
          expect(connection === undefined ? '' : describeConnection(connection)).not.toContain('s3cret');
        }
      }),
    );
  });
});
