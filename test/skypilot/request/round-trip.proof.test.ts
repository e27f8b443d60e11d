/** Random tasks and configurations, written by PyYAML as SkyPilot writes them, on their way through the service and back. */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { chainOf, inside, received } from '../../support/skypilot.ts';

const SCRIPT = `
import datetime, json, sys, yaml

${TOP_LEVEL_APART}
def dump(value):
    return yaml.dump(value, Dumper=TopLevelApart, default_flow_style=False, sort_keys=False)

def first(text):
    return next(iter(yaml.safe_load_all(text)))

def labelled(value, *path):
    *parents, name = path
    for parent in parents:
        if not isinstance(value.get(parent), dict):
            value[parent] = {}
        value = value[parent]
    value[name] = 'yes'

def answer(ask):
    if 'dump' in ask:
        return [dump(eval(text, {'datetime': datetime})) for text in ask['dump']]
    task, config = [eval(text, {'datetime': datetime}) for text in ask['original']]
    seen = [[repr(first(text)) for text in texts] for texts in ask['answered']]
    expected = [[repr(task), repr(config)]]
    labelled(task, 'resources', 'labels', 'reviewed-by')
    labelled(config, 'kubernetes', 'custom_metadata', 'labels', 'reviewed-by')
    return [[*expected, [repr(task), repr(config)]], seen]

for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
`;

import { hasPyYaml, Python, TOP_LEVEL_APART } from '../../base/yaml/python.ts';

/** The same again: a run that fails can be repeated. */
const SEED = 20_261_121;
const RUNS = 300;

/** Texts that PyYAML would take for something else, if nobody quoted them. */
const TRAPS = [
  ...['yes', 'No', 'on', 'OFF', 'y', 'n', 'true', 'null', '~', '', ' ', 'Null', '=', '<<', '-', '?', '---'],
  ...['...'],
  ...['012', '0o14', '0x1F', '0b11', '1_000', '1:30', '190:20:30', '1e3', '1.5e+3', '.5', '.inf', '-.INF'],
  ...['.NaN'],
  ...['2026-11-21', '2026-11-21T10:00:00Z', '2026-11-21 10:00:00.5 +1', '+1', '-0', '00', '1.', '8080'],
  ...['16Gi'],
  ...['a: b', 'a #b', '#a', '- a', '[a', '{a', '*a', '&a', '!a', '%a', '@a', '`a', '|', '>', "'", '"', 'a:'],
  ...[','],
  ...['a\nb', 'a\nb\n', 'a\n\n\nb\n\n', '\na', ' a', 'a ', 'a\t', '\ta', '  a\nb', 'a \nb', 'a\r\nb'],
  ...['a\n  b\nc\n'],
  ...['größer', '大模型', '😀', '\u0085', '\u2028', '\ufeff', '\u0007', '\u00a0', 'x'.repeat(200)],
  ...['word '.repeat(60)],
  ...['set -e\npip install x\npython -c "print(\'a: b\')" | tee log # why\n'],
];

/** Values as Python writes them: what JSON can't tell apart, 1 and 1.0, and what it has not, dates. */
const text = fc.oneof(
  fc.constantFrom(...TRAPS),
  fc.string({ maxLength: 12 }),
  fc.string({ unit: 'grapheme', maxLength: 8 }),
);
const pythonText = text.map((value) => JSON.stringify(value));
const pythonScalar = fc.oneof(
  { weight: 4, arbitrary: pythonText },
  { weight: 2, arbitrary: fc.integer().map(String) },
  { weight: 1, arbitrary: fc.bigInt({ min: -(2n ** 80n), max: 2n ** 80n }).map(String) },
  {
    weight: 2,
    arbitrary: fc
      .double()
      .map((value) =>
        Number.isFinite(value) ? `float("${value}")` : `float("${String(value).replace('Infinity', 'inf')}")`,
      ),
  },
  { weight: 2, arbitrary: fc.constantFrom('None', 'True', 'False', '1.0', '-0.0', '0.1', '1e16', '1e-7') },
  {
    weight: 1,
    arbitrary: fc
      .tuple(
        fc.integer({ min: 1000, max: 9999 }),
        fc.integer({ min: 1, max: 12 }),
        fc.integer({ min: 1, max: 28 }),
      )
      .map(([year, month, day]) => `datetime.date(${year}, ${month}, ${day})`),
  },
  { weight: 1, arbitrary: fc.constant('datetime.datetime(2026, 11, 21, 9, 30, 0, 250000)') },
);
const pythonKey = fc.oneof(
  { weight: 12, arbitrary: pythonText },
  { weight: 1, arbitrary: fc.constantFrom('8080', 'True', 'None', '1.5', 'datetime.date(2026, 11, 21)') },
);
const dict = (pairs: readonly (readonly [string, string])[]) =>
  `{${pairs.map(([key, value]) => `${key}: ${value}`).join(', ')}}`;
const pythonValue = fc.letrec<{ value: string; dict: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthIdentifier: 'tree' },
    { weight: 3, arbitrary: pythonScalar },
    { weight: 2, arbitrary: tie('dict') },
    {
      weight: 1,
      arbitrary: fc
        .array(tie('value'), { maxLength: 3, depthIdentifier: 'tree' })
        .map((items) => `[${items.join(', ')}]`),
    },
  ),
  dict: fc.array(fc.tuple(pythonKey, tie('value')), { maxLength: 3, depthIdentifier: 'tree' }).map(dict),
}));
const withMembers = (...names: string[]) =>
  fc
    .tuple(
      fc.subarray(names),
      fc.array(pythonValue.dict, { minLength: names.length, maxLength: names.length }),
      fc.array(fc.tuple(pythonKey, pythonValue.value), { maxLength: 4 }),
    )
    .map(([own, values, further]) =>
      dict([...further, ...own.map((name, index) => [`"${name}"`, values[index] ?? 'None'] as const)]),
    );
const requests = fc.tuple(withMembers('resources', 'envs'), withMembers('kubernetes', 'gcp'));

const what = hasPyYaml ? 'as PyYAML sees it' : 'NOT COMPARED, SINCE PYTHON3 WITH PYYAML 6 IS MISSING';

describe.skipIf(!hasPyYaml)(`a random request, ${what}`, () => {
  let python: Python;
  beforeAll(() => {
    python = new Python(SCRIPT);
  });
  afterAll(() => python.close());

  it('keeps its meaning if no policy changes it, and gets a label if one adds it', async () => {
    const idle = await chainOf({ IdlePolicy: '' });
    const labelling = await chainOf({
      LabelPolicy: `const mapping = (value) => (typeof value === 'object' && !Array.isArray(value) && value) || {};
        const resources = mapping(task.resources);
        task.resources = { ...resources, labels: { ...mapping(resources.labels), 'reviewed-by': 'yes' } };
        config.setNested(['kubernetes', 'custom_metadata', 'labels', 'reviewed-by'], 'yes');`,
    });
    let reviewed = 0;
    await fc.assert(
      fc.asyncProperty(requests, async (original) => {
        const [task, skypilot_config] = (await python.ask({ dump: original })) as string[];
        const request = received({ task, skypilot_config });
        const reviews = [await idle.review(request), await labelling.review(request)];
        expect(reviews.map(({ changed }) => changed)).toEqual([false, true]);
        const answered = reviews.map(({ answer }) => {
          const texts = inside(answer ?? '');
          return [texts.task, texts.skypilot_config];
        });
        const [expected, seen] = (await python.ask({ original, answered })) as [string[][], string[][]];
        expect({ seen, written: [task, skypilot_config] }).toMatchObject({ seen: expected });
        reviewed += 1;
      }),
      { numRuns: RUNS, seed: SEED },
    );
    expect(reviewed).toBe(RUNS);
  });
});
