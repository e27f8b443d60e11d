/** Properties of layers, whatever their content. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { Entry, Layer } from '../../src/config/layer.ts';
import { describeOptions } from '../../src/config/option.ts';
import { resolve } from '../../src/config/resolve.ts';

const shape = { a: z.string().default('default'), b: z.string().optional(), c: z.string().default('') };
const options = [...describeOptions('s', z.object(shape)), ...describeOptions('t', z.object(shape))];

const text = fc.string({ unit: 'grapheme' }).map((value) => value.replaceAll('$', ''));
const section = fc.dictionary(fc.constantFrom('a', 'b', 'c'), text);
const contents = fc.dictionary(fc.constantFrom('s', 't', 'other'), section);
const layer: fc.Arbitrary<Layer> = fc.tuple(contents, fc.nat()).map(([sections, line]) => {
  const origin = { kind: 'file', file: 'f', line } as const;
  return new Map(
    Object.entries(sections).map(([name, entries]) => [
      name,
      new Map(Object.entries(entries).map(([option, value]) => [option, { value, origin }])),
    ]),
  );
});
const layers = fc.array(layer, { maxLength: 6 });

/** One layer in which the entries of later layers replace those of earlier ones. */
function fold(all: readonly Layer[]): Layer {
  const folded = new Map<string, Map<string, Entry>>();
  for (const sections of all) {
    for (const [name, entries] of sections) {
      folded.set(name, new Map([...(folded.get(name) ?? []), ...entries]));
    }
  }
  return folded;
}

/** Value and origin of each option. */
function effective(all: readonly Layer[]) {
  return resolve(all, options).settings.map(({ option, value, origin }) => ({
    name: option.name,
    value,
    origin,
  }));
}

describe('layers', () => {
  it('have the value and the origin of the last one with the option', () => {
    fc.assert(
      fc.property(layers, (all) => {
        for (const { option, value, origin } of resolve(all, options).settings) {
          const entries = all.flatMap((one) => one.get(option.section)?.get(option.name) ?? []);
          const last = entries.at(-1) ?? { value: option.default, origin: { kind: 'default' } };
          expect({ value, origin }).toEqual(last);
        }
      }),
    );
  });

  it('may be folded anywhere', () => {
    fc.assert(
      fc.property(layers, fc.nat(6), fc.nat(6), (all, from, to) => {
        const partly = [...all.slice(0, from), fold(all.slice(from, to)), ...all.slice(Math.max(from, to))];
        expect(effective(partly)).toEqual(effective(all));
        expect(effective([fold(all)])).toEqual(effective(all));
      }),
    );
  });
});
