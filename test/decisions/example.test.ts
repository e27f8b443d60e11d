import { expect, it } from 'vitest';
import type { DecisionOutcome } from '../../src/decisions/record.ts';
import { decisionsInFile } from '../support/decision-logs.ts';
import { projectFile } from '../support/files.ts';

const records = decisionsInFile(projectFile('examples/decisions.jsonl'));

it('every line of examples/decisions.jsonl is a decision, in the order of its time', () => {
  expect(records.length).toBeGreaterThan(20);
  const times = records.map(({ time }) => time);
  expect(times).toEqual(times.toSorted());
  expect(new Set(records.map(({ request_id }) => request_id)).size).toBe(records.length);
});

it('examples/decisions.jsonl has each outcome and each operation', () => {
  const outcomes: DecisionOutcome[] = [
    'allowed',
    'rejected',
    'failed',
    'exempt',
    'audit',
    'allowed-on-error',
  ];
  expect(new Set(records.map(({ outcome }) => outcome))).toEqual(new Set(outcomes));
  expect(new Set(records.map(({ operation }) => operation))).toEqual(new Set(['create', 'update', 'end']));
});

it('what the decisions of examples/decisions.jsonl say agrees with itself', () => {
  for (const { allowed, outcome, message, operation, failed, filter, filters } of records) {
    expect(allowed).toBe(operation === 'end' || !['rejected', 'failed'].includes(outcome));
    expect(message === null).toBe(allowed);
    expect(failed).toBe(outcome === 'failed');
    expect(filter === null).toBe(['allowed', 'exempt'].includes(outcome));
    if (filter !== null) {
      expect(filters.map((one) => one.filter)).toContain(filter);
    }
  }
});
