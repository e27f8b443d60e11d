import { describe, expect, it } from 'vitest';
import { pipelineProblems } from '../../../src/skypilot/config/pipeline-problems.ts';

const problems = (text: string) =>
  pipelineProblems(text).map(({ severity, line, message }) => `${severity} ${line} ${message.split(':')[0]}`);

const JOBS = '---\nname: a\nrun: x\n---\nname: b\nrun: y\n';
const group = (header = '', jobs = JOBS) => `name: g\nexecution: parallel\n${header}${jobs}`;

// As SkyPilot's loader answers to each.
describe('SkyPilot accepts', () => {
  it.for([
    '',
    'run: x\n',
    'run: x\n---\nexecution: both\n',
    `name: p\n${JOBS}`,
    `name: p\nexecution: serial\n${JOBS}`,
    `name: p\nexecution: null\n${JOBS}`,
    group(),
    group('primary_tasks: [a]\n'),
    group('primary_tasks: []\n'),
    ...['30s', '30', "'5M'", '{default: 1m, a: 2h}', 'null'].map((delay) =>
      group(`termination_delay: ${delay}\n`),
    ),
    group('inter_connection: false\n'),
    group('', '---\n---\nname: a\n'),
    'name: gé-1_x\nexecution: parallel\n---\nname: a\n',
  ])('%j', (text) => {
    expect(problems(text)).toEqual([]);
  });
});

describe('SkyPilot refuses', () => {
  it.for<[string, string]>([
    ['name: p\nexecution: parallel\n', '2 execution'],
    [`name: p\nexecution: both\n${JOBS}`, '2 execution'],
    [`execution: parallel\n${JOBS}`, '1 name'],
    ...["''", 'g g', '1', 'a/b', 'null', '2026-01-01'].map((name): [string, string] => [
      `name: ${name}\nexecution: parallel\n${JOBS}`,
      '1 name',
    ]),
    [group('', '---\nrun: x\n'), '4 name'],
    [group('', '---\nrun: x\nname: a b\n'), '5 name'],
    [group('', '---\nname: a\n---\nrun: x\nname: a\n'), '7 name'],
    ...['[c]', 'a', '[1]', '{a: 1}'].map((list): [string, string] => [
      group(`primary_tasks: ${list}\n`),
      '3 primary_tasks',
    ]),
    ...['soon', '1.5', '[1]', "'30 s'", 'true', '-1', '{c: 1m}', '{a: soon}'].map(
      (delay): [string, string] => [group(`termination_delay: ${delay}\n`), '3 termination_delay'],
    ),
    [group('inter_connection: 1\n'), '3 inter_connection'],
  ])('%j', ([text, problem]) => {
    expect(problems(text)).toEqual([`error ${problem}`]);
  });
});

it('warns about what a header may not have, whatever its name', () => {
  expect(problems(group('run: x\n__proto__: y\n'))).toEqual(['warning 3 run', 'warning 4 __proto__']);
});
