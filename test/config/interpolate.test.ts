import { describe, expect, it } from 'vitest';
import { interpolate, type Lookup, UnknownReferenceError } from '../../src/config/interpolate.ts';

const texts: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  s: { host: 'h', both: 'near', token: 'hush', dollars: '$$ $& $1 $host' },
  default: { both: 'far', region: 'RegionTwo' },
  other: { port: '80', 'a.b': 'dotted' },
};

const lookup: Lookup = (section, option) => {
  const options = texts[section] ?? {};
  const text = Object.hasOwn(options, option) ? options[option] : undefined;
  return text === undefined ? undefined : { text, secret: option === 'token' };
};

function text(written: string): string {
  return interpolate(written, 's', lookup).text;
}

describe('a reference', () => {
  it.each([
    ['$host', 'h'],
    [`\${host}`, 'h'],
    ['http://$host/x', 'http://h/x'],
    [`\${host}name`, 'hname'],
    ['$region', 'RegionTwo'],
    ['$both', 'near'],
    [`\${other.port}`, '80'],
    ['$other.port', '80'],
    [`\${OTHER.port}`, '80'],
    [`\${DEFAULT.region}`, 'RegionTwo'],
    [`\${other.a.b}`, 'dotted'],
  ])('%s is replaced by the value of the option: %s', (written, value) => {
    expect(text(written)).toBe(value);
  });

  it('is replaced once: the references in its value are not', () => {
    expect(text('<$dollars>')).toBe('<$$ $& $1 $host>');
  });

  it.each([
    ['$nothing', 'nothing'],
    ['$host.example.org', 'host.example.org'],
    [`\${other.host}`, 'other.host'],
    ['$Host', 'Host'],
    ['$host.', 'host.'],
    ['$toString', 'toString'],
  ])('%s to an option that is not set is an error', (written, reference) => {
    expect(() => text(written)).toThrow(UnknownReferenceError);
    expect(() => text(written)).toThrow(expect.objectContaining({ reference }));
  });

  it('to a secret makes the whole text a secret', () => {
    expect(interpolate('a $token', 's', lookup)).toEqual({ text: 'a hush', secret: true });
    expect(interpolate('$token $host', 's', lookup)).toEqual({ text: 'hush h', secret: true });
    expect(interpolate('$host', 's', lookup)).toEqual({ text: 'h', secret: false });
    expect(interpolate('$$token', 's', lookup)).toEqual({ text: '$token', secret: false });
  });
});

describe('a dollar sign', () => {
  it.each([
    ['$$', '$'],
    ['\\$', '$'],
    ['$$host', '$host'],
    ['$$$host', '$h'],
    [`$\${host}`, `\${host}`],
  ])('is written %s', (written, value) => {
    expect(text(written)).toBe(value);
  });

  it.each(['$', '5 $', '$1', '$ x', '$-', `\${}`, `\${host`, `\${1}`, `\${a b}`, '100%', '{host}'])(
    'stays when no name follows it: %s',
    (written) => {
      expect(text(written)).toBe(written);
    },
  );
});
