import { expect, it } from 'vitest';
import { isPlainAccelerator, readingsOfAccelerator } from '../../../src/skypilot/index.ts';

it.each([
  ['a name of the catalogs', 'A100', [], ['a100']],
  ['that in another case', ' h200 ', ['H200-SXM'], ['h200']],
  ['a part of one of them', 'H20', [], ['h20', 'gh200', 'h200', 'h200-sxm']],
  ['a part of one that only the operator lists', 'X90', ['X900'], ['x90', 'x900']],
  ['a name with a dot, which stands for any character', 'H2.0', [], ['h2.0', 'gh200', 'h200', 'h200-sxm']],
  ['another name', 'mystery', ['A100'], ['mystery']],
  ['a TPU', 'TPU-v4', ['tpu-v4-8'], ['tpu-v4']],
])('readingsOfAccelerator reads %s', (_what, name, listed, expected) => {
  expect(readingsOfAccelerator(name, listed)).toEqual(expected);
});

it.each([
  ['A100-80GB', true],
  ['Gaudi HL-205', true],
  ['mig-1g.5gb', true],
  ['A10[0]', false],
  ['^A100$', false],
  ['80GB+', false],
  ['(?i)a100', false],
  ['\u212a80', false],
  ['', false],
  ['A'.repeat(1000), false],
])('whether %j is plain: %j', (name, expected) => {
  expect(isPlainAccelerator(name)).toBe(expected);
});
