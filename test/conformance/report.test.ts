import { expect, it } from 'vitest';
import type { Check, Finding } from '../../src/conformance/check.ts';
import { detailsOf } from '../../src/conformance/report.ts';
import type { Exchange } from '../../src/conformance/target.ts';

const check: Check = {
  id: 'x',
  title: 'x',
  protocol: 'Says so.',
  sources: ['here', 'there'],
  needs: [],
  run: () => [],
};

function finding(number: number): Finding {
  const exchange: Exchange = {
    operation: 'create',
    url: 'http://h/check-create',
    what: `lease ${number}`,
    bytes: 7,
    headers: { 'X-Auth-Token': '****' },
    valid: true,
    answer: { status: 200, headers: {}, body: 'fine', strayBytes: false },
    excerpt: 'fine',
    failure: undefined,
    milliseconds: 1,
  };
  return { expected: 'something else', exchange };
}

const details = (count: number) =>
  detailsOf({
    check,
    result: 'failed',
    reason: null,
    findings: Array.from({ length: count }, (_, index) => finding(index + 1)),
    exchanges: [],
    milliseconds: 1,
  });

it('a failure says what was sent, what came, what was expected, and what the protocol says where', () => {
  expect(details(1)).toEqual([
    ['sent', 'POST http://h/check-create: lease 1, 7 bytes; X-Auth-Token: ****'],
    ['came', '200 fine'],
    ['expected', 'something else'],
    ['protocol', 'Says so.'],
    ['source', 'here; there'],
  ]);
});

it('of more than three wrong answers the first three are told, and how many more there are', () => {
  expect(details(3)).toHaveLength(11);
  expect(details(5).slice(8)).toEqual([
    ['expected', 'something else'],
    ['more', '2 more unexpected answers'],
    ['protocol', 'Says so.'],
    ['source', 'here; there'],
  ]);
});
