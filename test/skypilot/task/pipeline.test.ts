import { describe, expect, it } from 'vitest';
import { YamlDocument } from '../../../src/base/yaml/document.ts';
import { YamlError } from '../../../src/base/yaml/tree.ts';
import { InvalidBodyError } from '../../../src/skypilot/request/wire.ts';
import { pipelineProblems, tasksOf } from '../../../src/skypilot/task/pipeline.ts';
import { received } from '../../support/skypilot.ts';

describe('the tasks of a file', () => {
  // What SkyPilot's own loader makes of each: by hand, since it can't be installed here.
  it.each<[string, string, unknown[]]>([
    ['one', 'name: a\nrun: x\n', [{ name: 'a', run: 'x' }]],
    ['one behind "---"', '---\nrun: x\n', [{ run: 'x' }]],
    ['nothing', '', [{}]],
    ['a header alone', 'name: p\n', [{ name: 'p' }]],
    ['a header and two', 'name: p\n---\nrun: x\n---\nrun: y\n', [{ run: 'x' }, { run: 'y' }]],
    ['a group of jobs', 'name: g\nexecution: parallel\nprimary_tasks: [a]\n---\nname: a\n', [{ name: 'a' }]],
    ['two without a header', 'run: x\n---\nrun: y\n', [{ run: 'x' }, { run: 'y' }]],
    [
      'a name behind an empty document, which is no header',
      '---\n---\nname: a\n---\nrun: x\n',
      [{ name: 'a' }, { run: 'x' }],
    ],
    [
      'empty documents between and behind them',
      'name: p\n---\n---\nrun: x\n---\n# b\n---\nnull\n---\n',
      [{ run: 'x' }],
    ],
    ['nothing behind a header', 'name: p\n---\n', [{ name: 'p' }]],
    ['"..." between them', 'name: p\n...\n---\nrun: x\n...\n', [{ run: 'x' }]],
    [
      'two in one name',
      'run: "---\\n"\nsetup: |\n  a\n  ---\n  b\n',
      [{ run: '---\n', setup: 'a\n---\nb\n' }],
    ],
  ])('are: %s', (_, text, values) => {
    const tasks = tasksOf(text);
    expect(tasks.map(({ value }) => value)).toEqual(values);
    expect(tasks.map(({ number, of }) => [number, of])).toEqual(
      values.map((_, index) => [index + 1, values.length]),
    );
    // What is asked is the task itself, without the documents around it.
    expect(tasks.map(({ document }) => YamlDocument.parse(document.toString()).value ?? {})).toEqual(values);
  });

  it.each(['run: x\n---\n- a list\n', 'run: x\n---\ntext\n', 'run: x\n---\nrun: [\n', '- a\n'])(
    'are none where a document is no mapping: %j',
    (text) => {
      expect(() => tasksOf(text)).toThrow(YamlError);
    },
  );
});

it.each(['task', 'skypilot_config', 'user'])(
  'several documents instead of one are no request: %s',
  (member) => {
    for (const text of ['id: x\n---\nid: y\n', 'id: x\n--- {}\n', 'id: x\n---\n']) {
      expect(() => received({ [member]: text })).toThrow(InvalidBodyError);
      expect(() => received({ [member]: text })).toThrow(
        `${member}: expected YAML, and line 2: another document begins here`,
      );
    }
    expect(() => received({ [member]: 'id: x\n...\n# the end\n' })).not.toThrow();
  },
);

const problems = (text: string) =>
  pipelineProblems(text).map(({ severity, line, message }) => `${severity} ${line} ${message.split(':')[0]}`);

const JOBS = '---\nname: a\nrun: x\n---\nname: b\nrun: y\n';
const group = (header = '', jobs = JOBS) => `name: g\nexecution: parallel\n${header}${jobs}`;

// As SkyPilot's loader answers to each.
it.for([
  '',
  'run: x\n---\nexecution: both\n',
  `name: p\n${JOBS}`,
  `name: p\nexecution: serial\n${JOBS}`,
  `name: p\nexecution: null\n${JOBS}`,
  group(),
  group('primary_tasks: []\n'),
  ...['30s', '30', "'5M'", '{default: 1m, a: 2h}', 'null'].map((delay) =>
    group(`termination_delay: ${delay}\n`),
  ),
  group('inter_connection: false\n'),
  group('', '---\n---\nname: a\n'),
  'name: gé-1_x\nexecution: parallel\n---\nname: a\n',
])('SkyPilot accepts %j', (text) => {
  expect(problems(text)).toEqual([]);
});

it.for<[string, string]>([
  ['name: p\nexecution: parallel\n', '2 execution'],
  [`name: p\nexecution: both\n${JOBS}`, '2 execution'],
  [`execution: parallel\n${JOBS}`, '1 name'],
  ...["''", 'g g', '1', 'a/b', 'null', '2026-01-01'].map((name): [string, string] => [
    `name: ${name}\nexecution: parallel\n${JOBS}`,
    '1 name',
  ]),
  [group('', '---\nrun: x\n'), '4 name'],
  [group('', '---\nname: a\n---\nrun: x\nname: a\n'), '7 name'],
  ...['[c]', 'a', '[1]', '{a: 1}'].map((list): [string, string] => [
    group(`primary_tasks: ${list}\n`),
    '3 primary_tasks',
  ]),
  ...['soon', '1.5', '[1]', "'30 s'", 'true', '-1', '{c: 1m}', '{a: soon}'].map((delay): [string, string] => [
    group(`termination_delay: ${delay}\n`),
    '3 termination_delay',
  ]),
  [group('inter_connection: 1\n'), '3 inter_connection'],
])('SkyPilot refuses %j', ([text, problem]) => {
  expect(problems(text)).toEqual([`error ${problem}`]);
});

it('warns about what a header may not have, whatever its name', () => {
  expect(problems(group('run: x\n__proto__: y\n'))).toEqual(['warning 3 run', 'warning 4 __proto__']);
});
