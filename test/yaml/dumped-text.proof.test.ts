/** That the fast reader of PyYAML's own texts sees what the parser of the package sees, and what PyYAML sees, or gives up. */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isMap, isScalar, isSeq, Lexer, type Node } from 'yaml';
import { parsedContent } from '../../src/yaml/content.ts';
import { readDumped } from '../../src/yaml/dumped-text.ts';
import { asNode } from '../../src/yaml/edit.ts';
import { view } from '../../src/yaml/view.ts';
import { hasPyYaml, Python } from './python.ts';
import { HAND_WRITTEN, ODD_TEXTS } from './samples.ts';
import { scripts } from './scripts.ts';
import { isSame } from './seen.ts';

const SEED = 20_261_122;
const MANY = 1_000_000;
const DUMPS = 3000;
const MUTANTS = 6000;

/** All that the rest of the code asks a node for. */
function shape(node: Node | null): unknown {
  if (node === null) {
    return null;
  }
  const start = node.range?.[0];
  const { spaceBefore = false } = node as { spaceBefore?: boolean };
  if (isMap(node)) {
    const pairs = node.items.map(({ key, value }) => [shape(asNode(key)), shape(asNode(value))]);
    return { start, spaceBefore, flow: node.flow === true, pairs };
  }
  if (isSeq(node)) {
    return {
      start,
      spaceBefore,
      flow: node.flow === true,
      items: node.items.map((item) => shape(asNode(item))),
    };
  }
  if (!isScalar(node)) {
    throw new Error('expected no alias');
  }
  const { value, source, type, tag, anchor, range } = node;
  return { start, end: range?.[1], spaceBefore, value, source, type, tag, anchor };
}

/** Whether the fast reader has read it. Throws if it differs from the other. */
function isReadAlike(text: string): boolean {
  const dumped = readDumped(text, MANY);
  if (dumped === undefined) {
    return false;
  }
  const parsed = parsedContent(text, MANY);
  expect({ text, root: shape(dumped.root) }).toEqual({ text, root: shape(parsed.root) });
  const lineStarts = [...parsed.lines.lineStarts];
  expect(dumped.lineStarts.slice(0, lineStarts.length)).toEqual(lineStarts);
  const tokens = [...new Lexer().lex(text)].length;
  expect({ text, read: [tokens, tokens - 1].map((most) => readDumped(text, most) !== undefined) }).toEqual({
    text,
    read: [true, false],
  });
  return true;
}

const text = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...ODD_TEXTS) },
  { weight: 2, arbitrary: scripts },
  { weight: 2, arbitrary: fc.lorem({ maxCount: 30 }) },
  { weight: 1, arbitrary: fc.string({ maxLength: 8 }) },
);
const name = fc.oneof(
  { weight: 6, arbitrary: fc.stringMatching(/^[a-z_]{1,12}$/) },
  { weight: 1, arbitrary: fc.stringMatching(/^[\w./$@%+-]{1,12}$/) },
  { weight: 1, arbitrary: text },
);
const treeOf = (name: fc.Arbitrary<string>) =>
  fc.letrec<{ value: unknown; map: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4, depthSize: 'small' },
      fc.oneof({ weight: 3, arbitrary: text }, fc.integer(), fc.double({ noNaN: true, min: -1e9, max: 1e9 })),
      fc.constantFrom(null, true, false, 0, 1e21, 1.5, [], {}),
      fc.array(tie('value'), { maxLength: 4 }),
      tie('map'),
    ),
    map: fc
      .array(fc.tuple(name, tie('value')), { minLength: 1, maxLength: 5 })
      .map((members) => Object.fromEntries(members.filter(([one]) => one !== '__proto__'))),
  })).map;
const plainName = fc.stringMatching(/^[a-z_][a-z/.-]{0,11}$/);
const value = fc.oneof(treeOf(name), treeOf(plainName));
const form = fc.record({
  style: fc.constantFrom(null, null, null, '"', "'", '|', '>') as fc.Arbitrary<null | '"' | "'" | '|' | '>'>,
  width: fc.constantFrom(null, null, 20, 1000),
  isApart: fc.boolean(),
});

/** Each means something to one of the readers. */
const PIECES = [
  ...[' ', '  ', '\t', '\n', '\n\n', '\n  ', '\r\n', '\r', ' \n', ':', ': ', ' #', '#', '- ', '-', '? ', '?'],
  ...['<<', '<<: ', '&a ', '*a', '!!str ', '!', '|', '>', '{}', '[]', '{', ']', ',', "'", "''", '"', '\\'],
  ...['\\\n', '\\ ', '\\x', '%', '@', '`', '=', '~', '---', '\n---\n', '\n...\n', '...', '\u0085', '\u2028'],
  ...['\ufeff', '\u00a0', 'é', '0o17', '017', '1_000', '.inf', '-.inf', '.nan', '1:30', '1e3', '1.', '0x1F'],
  ...['0b1', '0b_', '2026-11-21', 'yes', 'No', 'on', 'null', 'Null', 'a', '1', '- - ', 'a: ', '\na: 1\n'],
];
const mutations = fc.array(
  fc.record({
    at: fc.nat(),
    length: fc.constantFrom(0, 0, 0, 1, 2, 5),
    piece: fc.constantFrom('', ...PIECES),
    isAtLine: fc.boolean(),
  }),
  { minLength: 1, maxLength: 3 },
);
type Mutation = typeof mutations extends fc.Arbitrary<infer All> ? All : never;

function mutated(written: string, all: Mutation): string {
  return all.reduce((now, { at, length, piece, isAtLine }) => {
    const any = at % (now.length + 1);
    const place = isAtLine ? now.lastIndexOf('\n', any) + 1 : any;
    return now.slice(0, place) + piece + now.slice(place + length);
  }, written);
}

const what = hasPyYaml ? 'as PyYAML reads it' : 'NOT COMPARED, SINCE PYTHON3 WITH PYYAML 6 IS MISSING';

describe.skipIf(!hasPyYaml)(`a text in the manner of PyYAML, ${what}`, () => {
  let python: Python;
  beforeAll(() => {
    python = new Python();
  });
  afterAll(() => python.close());

  async function check(written: string): Promise<boolean> {
    if (!isReadAlike(written)) {
      return false;
    }
    // The reader in C accepts no half of a surrogate pair.
    for (const isFast of /\\u[dD][89a-fA-F]/.test(written) ? [false] : [false, true]) {
      const seen = await python.read(written, isFast);
      const root = readDumped(written, MANY)?.root ?? null;
      expect({ written, isFast, seen, value: view(root, 'values') }).toSatisfy((all: { value: unknown }) =>
        isSame(seen, all.value),
      );
    }
    return true;
  }

  it('that PyYAML has written is read alike, most of them by the fast reader', async () => {
    const read: boolean[] = [];
    await fc.assert(
      fc.asyncProperty(value, form, async (one, { style, width, isApart }) => {
        const written = await python.dump(one, { style, width, isApart });
        const isRead = await check(written);
        if (style === null) {
          read.push(isRead);
        }
      }),
      { numRuns: DUMPS, seed: SEED },
    );
    expect(read.filter((one) => one).length / read.length).toBeGreaterThan(0.4);
  });

  it('that somebody has changed is read alike, or left to the other reader', async () => {
    let read = 0;
    await fc.assert(
      fc.asyncProperty(treeOf(plainName), form, mutations, async (one, { width, isApart }, all) => {
        const written = mutated(await python.dump(one, { width, isApart }), all);
        read += (await check(written)) ? 1 : 0;
      }),
      { numRuns: MUTANTS, seed: SEED },
    );
    expect(read).toBeGreaterThan(MUTANTS / 10);
  });

  it('of a few pieces is read alike, or left to the other reader', async () => {
    const piece = fc.constantFrom(...PIECES, ...PIECES.slice(0, 40), 'a: 1\n', '- a\n', '  ', 'b', 'c: ');
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 9 }), async (pieces) => {
        await check(pieces.join(''));
      }),
      { numRuns: MUTANTS, seed: SEED },
    );
  });

  it.each(HAND_WRITTEN.map((written, index) => ({ index, written })))(
    'by hand is read alike, or left to the other reader: $index',
    async ({ written }) => {
      await check(written);
    },
  );
});
