import { describe, expect, it } from 'vitest';
import { hideCredentials, showText, showValue } from '../../src/config/secret.ts';

describe('a value in an error', () => {
  it.each([
    ['one day', '"one day"'],
    ['a "b"\t', '"a \\"b\\"\\t"'],
    [60, '60'],
    [undefined, 'undefined'],
    [['a'], '["a"]'],
  ])('is shown as JSON: %j', (value, text) => {
    expect(showText(value)).toBe(text);
  });

  it('is shortened', () => {
    expect(showText('x'.repeat(5000))).toBe(`"${'x'.repeat(119)}…`);
  });

  it.each([
    ['60\nexternal_service_token = s3cret', '"60" and the indented lines below it'],
    ['\ns3cret', '"" and the indented lines below it'],
    ['60\n', '"60" and the indented lines below it'],
    [`${'x'.repeat(5000)}\ns3cret`, `"${'x'.repeat(119)}… and the indented lines below it`],
    ['http://u:p\n@h', '"http://u:p" and the indented lines below it'],
  ])('of several lines is its first one, and the rest is only mentioned: %j', (value, text) => {
    expect(showText(value)).toBe(text);
  });

  it('does not show the credentials of a URL, however long it is', () => {
    expect(showText('ftp://user:pässword@host/path')).toBe('"ftp://****@host/path"');
    expect(showText(`http://user:${'p'.repeat(5000)}@host/`)).toBe('"http://****@host/"');
  });
});

describe('credentials', () => {
  it.each([
    ['https://user:password@host/a', 'https://****@host/a'],
    ['https://token@host', 'https://****@host'],
    ['HTTPS://user:p@ss@host/', 'HTTPS://****@host/'],
    ['see http://u:p@a/ and http://u:p@b/', 'see http://****@a/ and http://****@b/'],
    ['postgresql+psycopg://u:p@h/db', 'postgresql+psycopg://****@h/db'],
  ])('are hidden in %s', (text, shown) => {
    expect(hideCredentials(text)).toBe(shown);
  });

  it.each(['https://host/path', 'https://host/a?mail=me', 'someone@example.org', 'a:b', ''])(
    'are not looked for in %s',
    (text) => {
      expect(hideCredentials(text)).toBe(text);
    },
  );
});

describe('a value that is printed', () => {
  it.each(['hush', ['a', 'b'], { a: 1 }, 0, false])('is hidden when it is a secret: %j', (value) => {
    expect(showValue(value, true)).toBe('****');
  });

  it.each([undefined, '', []])('is no secret when it is empty: %j', (value) => {
    expect(showValue(value, true)).toBe(value);
  });

  it('stays as it is otherwise, but for credentials', () => {
    const list = ['a'];
    expect(showValue(60, false)).toBe(60);
    expect(showValue(list, false)).toBe(list);
    expect(showValue('http://u:p@h/', false)).toBe('http://****@h/');
  });
});
