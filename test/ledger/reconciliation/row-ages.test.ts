import { expect, it } from 'vitest';
import { RowAges } from '../../../src/ledger/reconciliation/reconcile.ts';

function rowAges() {
  const clock = { now: 1000 };
  return { clock, known: new RowAges(() => clock.now) };
}

const ROW = { id: 1n, revision: 7n };

it('knows a row for as long as it has been as it is', () => {
  const { clock, known } = rowAges();
  known.learn([ROW]);
  clock.now = 4000;
  known.learn([ROW]);
  expect(known.age(ROW, clock.now)).toBe(3000);
});

it('takes a row that was asked for again for a new one', () => {
  const { clock, known } = rowAges();
  known.learn([ROW]);
  clock.now = 4000;
  const again = { ...ROW, revision: 8n };
  expect(known.age(again, clock.now)).toBe(0);
  known.learn([again]);
  clock.now = 5000;
  expect(known.age(again, clock.now)).toBe(1000);
});

it('forgets what is not there any more', () => {
  const { clock, known } = rowAges();
  known.learn([ROW]);
  known.learn([]);
  clock.now = 4000;
  expect(known.age(ROW, clock.now)).toBe(0);
});
