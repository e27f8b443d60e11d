import { describe, expect, it } from 'vitest';
import { hideCredentials, showText, showValue } from '../../src/config/secret.ts';

const LONG = 'x'.repeat(5000);
const MORE = 'and the indented lines below it';

it.each([
  ['as JSON', 'a "b"\t', '"a \\"b\\"\\t"'],
  ['as JSON', 60, '60'],
  ['as JSON', undefined, 'undefined'],
  ['as JSON', ['a'], '["a"]'],
  ['shortened', LONG, `"${'x'.repeat(119)}…`],
  ['with its first line only', '60\nexternal_service_token = s3cret', `"60" ${MORE}`],
  ['with its first line only', '\ns3cret', `"" ${MORE}`],
  ['with its first line only', '60\n', `"60" ${MORE}`],
  ['with its first line only', `${LONG}\ns3cret`, `"${'x'.repeat(119)}… ${MORE}`],
  ['with its first line only', 'http://u:p\n@h', `"http://u:p" ${MORE}`],
  ['without credentials', 'ftp://user:pässword@host/path', '"ftp://****@host/path"'],
  ['without credentials', `http://user:${LONG}@host/`, '"http://****@host/"'],
])('a value in an error is shown %s: %j', (_how, value, text) => {
  expect(showText(value)).toBe(text);
});

it.each([
  ['https://user:password@host/a', 'https://****@host/a'],
  ['https://token@host', 'https://****@host'],
  ['HTTPS://user:p@ss@host/', 'HTTPS://****@host/'],
  ['see http://u:p@a/ and http://u:p@b/', 'see http://****@a/ and http://****@b/'],
  ['postgresql+psycopg://u:p@h/db', 'postgresql+psycopg://****@h/db'],
  ['https://host/a?key=s3cret&mail=me', 'https://host/a?****'],
  ['https:/host/a?key=s3cret', 'https:/host/a?****'],
  ['https://u:p@host/a?key=s3cret', 'https://****@host/a?****'],
  ['at ("https://host/a?key=s3cret"): no', 'at ("https://host/a?****"): no'],
  ...['https://host/path', 'https://host?', 'someone@example.org', 'a:b', 'what?x', ''].map((text) => [
    text,
    text,
  ]),
])('credentials and queries are hidden in %s: %s', (text = '', shown) => {
  expect(hideCredentials(text)).toBe(shown);
});

describe('a value that is printed', () => {
  it('is hidden when it is a secret, unless it is empty', () => {
    for (const value of ['hush', ['a', 'b'], { a: 1 }, 0, false]) {
      expect(showValue(value, true)).toBe('****');
    }
    for (const value of [undefined, '', []]) {
      expect(showValue(value, true)).toBe(value);
    }
  });

  it('is unchanged otherwise, except for credentials', () => {
    const list = ['a'];
    expect(showValue(60, false)).toBe(60);
    expect(showValue(list, false)).toBe(list);
    expect(showValue('http://u:p@h/', false)).toBe('http://****@h/');
  });
});
