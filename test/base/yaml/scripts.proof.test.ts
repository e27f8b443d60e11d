/** That no text loses or gains a character here, whoever wrote it and in whatever form: PyYAML, the judge, has two readers. */
import { writeFileSync } from 'node:fs';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { YamlDocument } from '../../../src/base/yaml/document.ts';
import { type Form, hasPyYaml, Python, type Read } from './python.ts';
import { CORPUS, corpus, LOOKALIKES, type RecordedText, scripts } from './scripts.ts';

/** The same again: a run that fails can be repeated. */
const SEED = 20_261_122;
const RUNS = 800;

const texts = fc.oneof(
  { weight: 6, arbitrary: scripts },
  { weight: 1, arbitrary: fc.constantFrom(...LOOKALIKES) },
);
const form: fc.Arbitrary<Form> = fc.record({
  style: fc.constantFrom(null, '"', "'", '|', '>'),
  width: fc.constantFrom(null, 20, 1000),
  unicode: fc.boolean(),
});
/** A task as small as it may be: its script at some depth, in lists, in brackets and as a name. */
const task = texts.map((text) => ({
  run: text,
  envs: { A: text, [text]: 'x' },
  list: [text, [text, { b: text }]],
}));

function runOf(seen: Read): unknown {
  const [, , run] = (seen?.kind === 'map' && seen.pairs.find(([name]) => name === 'run')) || [];
  return run?.kind === 'str' ? run.text : run;
}

const what = hasPyYaml ? 'as PyYAML reads it' : 'NOT COMPARED, SINCE PYTHON3 WITH PYYAML 6 IS MISSING';

describe.skipIf(!hasPyYaml)(`a random script, ${what}`, () => {
  let python: Python;
  beforeAll(() => {
    python = new Python();
  });
  afterAll(() => python.close());

  // RECORD_TEXTS=1 npx vitest run --project proofs test/base/yaml/scripts.proof.test.ts
  it.runIf(process.env.RECORD_TEXTS === '1')('is recorded', async () => {
    const samples = fc.sample(fc.tuple(scripts, form), { numRuns: 80, seed: SEED });
    const all: [string, Form][] = [...samples, ...LOOKALIKES.map((text): [string, Form] => [text, {}])];
    const recorded: RecordedText[] = [];
    for (const [text, written] of all) {
      const source = await python.dump({ run: text, num_nodes: 1 }, written);
      const changed = YamlDocument.parse(source).with({ run: text, num_nodes: 2 }).toString();
      recorded.push({ text, source, changed, written: YamlDocument.from({ run: text }).toString() });
    }
    writeFileSync(CORPUS, `${JSON.stringify(recorded, null, 2)}\n`);
  });

  it('is the same text wherever it is recorded', async () => {
    for (const { text, source, changed, written } of corpus()) {
      const read = (yaml: string) => bothReaders(yaml).then((seen) => seen.map((one) => runOf(one)));
      expect({ text, source: await read(source) }).toEqual({ text, source: [text, text] });
      expect({ text, changed: await read(changed) }).toEqual({ text, changed: [text, text] });
      expect({ text, written: await read(written) }).toEqual({ text, written: [text, text] });
    }
  });

  const bothReaders = async (text: string) => [await python.read(text), await python.read(text, true)];

  it('is the same text when code writes it', async () => {
    await fc.assert(
      fc.asyncProperty(task, async (value) => {
        const written = YamlDocument.from(value).toString();
        const expected = await python.read(await python.dump(value));
        expect(expected).toBeDefined();
        expect({ written, seen: await bothReaders(written) }).toMatchObject({ seen: [expected, expected] });
      }),
      { numRuns: RUNS, seed: SEED },
    );
  }, 900_000);

  it('is the same text behind a change elsewhere, and written anew, in whatever form it came', async () => {
    await fc.assert(
      fc.asyncProperty(task, form, async (value, written) => {
        const source = await python.dump(value, written);
        const expected = await python.read(source);
        const document = YamlDocument.parse(source);
        expect(document.value).toEqual(value);
        const formatted = document.format();
        expect({ source, formatted, seen: await bothReaders(formatted) }).toMatchObject({
          seen: [expected, expected],
        });
        const labelled = { ...value, labels: { a: 'b' } };
        const changed = document.with(labelled).toString();
        const now = await python.read(await python.dump(labelled));
        expect({ source, changed, seen: await bothReaders(changed) }).toMatchObject({ seen: [now, now] });
      }),
      { numRuns: RUNS, seed: SEED },
    );
  }, 900_000);
});
