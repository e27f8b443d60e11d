import { describe, expect, it } from 'vitest';
import { postgresPlace } from '../../../../src/ledger/storage/postgres/settings.ts';
import { tlsFixture } from '../../../support/tls.ts';

/** Nobody connects. */
const CA = tlsFixture('ca.pem');
const place = (parameters: string) =>
  postgresPlace(`postgresql://alice:pass%40word@db.example.org:5433/books?${parameters}`);
/** What a mode comes to: each attempt, with what is verified. */
const attempts = (parameters: string) =>
  place(parameters).attempts.map((tls) =>
    tls === false
      ? 'plain'
      : !tls.rejectUnauthorized
        ? 'encrypted'
        : tls.checkServerIdentity === undefined
          ? 'authority and name'
          : 'authority',
  );

describe('a URL of PostgreSQL', () => {
  it('reads place, user and name', () => {
    expect(place('').config).toMatchObject({
      host: 'db.example.org',
      port: 5433,
      user: 'alice',
      password: 'pass@word',
      database: 'books',
      application_name: 'blazar-enforcement',
    });
    expect(place('host=/run/postgresql&user=bob&application_name=mine').config).toMatchObject({
      host: '/run/postgresql',
      user: 'bob',
      application_name: 'mine',
    });
  });

  it.each([
    ['-c%20search_path=books', [['search_path', 'books']]],
    [
      '-csearch_path=a,b%20%20--work-mem=4MB',
      [
        ['search_path', 'a,b'],
        ['work_mem', '4MB'],
      ],
    ],
    ['-c%20a.b=one%5C%20two%5C%5C', [['a.b', 'one two\\']]],
    ['%20', []],
  ])('adds the options %s to its own settings', (options, expected) => {
    const { config, settings } = place(`options=${options}`);
    expect(settings.slice(2)).toEqual(expected);
    expect(config.options, 'a pooler would not pass them on').toBeUndefined();
  });

  it.each(['-d%205', '-c', '-c%20x', '--x', 'x=1', '-c%201=2', "-c%20x'=2"])(
    'refuses the options %s',
    (options) => {
      expect(() => place(`options=${options}`)).toThrow(
        'the parameter options is not a list of -c name=value',
      );
    },
  );

  it.each([
    ['', ['encrypted', 'plain']],
    ['sslmode=disable', ['plain']],
    ['sslmode=allow', ['plain', 'encrypted']],
    ['sslmode=prefer', ['encrypted', 'plain']],
    ['sslmode=require', ['encrypted']],
    [`sslmode=require&sslrootcert=${CA}`, ['authority']],
    [`sslmode=verify-ca&sslrootcert=${CA}`, ['authority']],
    [`sslmode=verify-full&sslrootcert=${CA}`, ['authority and name']],
    ['sslmode=verify-full&sslrootcert=system', ['authority and name']],
    ['sslrootcert=system', ['authority and name']],
  ])('with %s verifies as libpq does', (parameters, expected) => {
    expect(attempts(parameters)).toEqual(expected);
  });

  it.each([
    ['sslmod=require', 'the parameter sslmod is not one of'],
    ['target_session_attrs=read-write', 'the parameter target_session_attrs is not one of'],
    ['host=a.example,b.example', 'several hosts are not supported: name one address'],
    ['statement_timeout=0', 'the parameter statement_timeout is not one of'],
    ['sslmode=required', 'sslmode is not one of disable, allow, prefer, require, verify-ca, verify-full'],
    ['sslmode=verify-full', 'sslmode=verify-full needs sslrootcert'],
    ['sslmode=verify-ca', 'sslmode=verify-ca needs sslrootcert'],
    ['sslmode=require&sslrootcert=system', 'sslrootcert=system needs sslmode=verify-full'],
    ['sslmode=verify-ca&sslrootcert=/nowhere', 'sslrootcert cannot be read: there is no such file'],
    ['sslmode=verify-full&sslrootcert=/dev/null', 'the file of sslrootcert holds no certificate in PEM'],
    ['port=many', 'the parameter port is not a port'],
    ['port=65536', 'the parameter port is not a port'],
    ['port=0', 'the parameter port is not a port'],
    ['options=-cClient-Encoding=LATIN1', 'the parameter options cannot set Client_Encoding'],
    ['connect_timeout=soon', 'the parameter connect_timeout is not a whole number of seconds'],
  ])('with %s is a mistake', (parameters, message) => {
    expect(() => place(parameters)).toThrow(message);
  });

  it('with a % that stands for itself is a mistake that shows no password', () => {
    expect(() => postgresPlace('postgresql://alice:100%25%2@a.example/books')).toThrow(
      /^a % in the user, password, host or database of the URL is written %25$/,
    );
  });

  it('with several hosts before the path is a mistake, too', () => {
    expect(() => postgresPlace('postgresql://alice:password@a.example,b.example/books')).toThrow(
      /^several hosts are not supported: name one address, which leads to the server that can be written$/,
    );
  });
});
