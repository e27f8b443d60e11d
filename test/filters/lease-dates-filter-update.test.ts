import { describe, expect, it } from 'vitest';
import type { Lease, UpdateRequest } from '../../src/index.ts';
import { ALLOWED, REJECTED, rejectedWith } from '../support/decisions.ts';
import { updateExtend } from '../support/requests.ts';
import { DAY, load } from './lease-dates.ts';

describe('LeaseDatesFilter at update', () => {
  /** The current lease is from 2026-12-01T09:00 to 2026-12-03T09:00. */
  const update = async (lines: readonly string[], lease: Partial<Lease>, current: Partial<Lease> = {}) => {
    const { context, currentLease } = updateExtend();
    const request: UpdateRequest = { context, currentLease: { ...currentLease, ...current }, lease };
    return (await load(lines)).checkUpdate(request);
  };
  const LATE_START = ['lease_dates_earliest_start = 2026-12-02T09:00:00'];
  const EARLY_END = ['lease_dates_latest_end = 2026-12-02T09:00:00'];

  it('checks the new end of the captured extension', async () => {
    const ask = async (end: string) =>
      (await load([`lease_dates_latest_end = ${end}`])).checkUpdate(updateExtend());
    expect(await ask('2026-12-05T09:00:00')).toMatchObject(ALLOWED);
    expect(await ask('2026-12-05T08:59:59')).toMatchObject(
      rejectedWith('The lease ends at 2026-12-05T09:00:00Z; no lease may end after 2026-12-05T08:59:59Z.'),
    );
  });

  it('allows a start that stays or moves later, even if it is too early', async () => {
    for (const start_date of [
      '2026-12-01T09:00:00',
      '2026-12-01T10:00:00+01:00',
      '2026-12-01T09:00:00.000001',
    ]) {
      expect(await update(LATE_START, { start_date }), start_date).toMatchObject(ALLOWED);
    }
  });

  it('rejects a start that is too early and moves a microsecond earlier', async () => {
    expect(await update(LATE_START, { start_date: '2026-12-01T08:59:59.999999' })).toMatchObject(
      rejectedWith(
        expect.stringMatching(/^The lease starts at .*; no lease may start before 2026-12-02T09:00:00Z\.$/),
      ),
    );
  });

  it('allows an end that stays or moves earlier, even if it is too late', async () => {
    for (const end_date of [
      '2026-12-03T09:00:00',
      '2026-12-03T10:00:00+01:00',
      '2026-12-03T08:59:59.999999',
    ]) {
      expect(await update(EARLY_END, { end_date }), end_date).toMatchObject(ALLOWED);
    }
  });

  it('rejects an end that is too late and moves a microsecond later', async () => {
    expect(await update(EARLY_END, { end_date: '2026-12-03T09:00:00.000001' })).toMatchObject(
      rejectedWith(expect.stringContaining('no lease may end after 2026-12-02T09:00:00Z.')),
    );
  });

  it('allows an earlier start and a later end within the limits', async () => {
    const lines = ['lease_dates_earliest_start = 2026-11-30', 'lease_dates_latest_end = 2026-12-06'];
    expect(await update(lines, { start_date: '2026-11-30', end_date: '2026-12-06' })).toMatchObject(ALLOWED);
    expect(await update(lines, { start_date: '2026-11-29T23:59', end_date: '2026-12-06' })).toMatchObject(
      REJECTED,
    );
    expect(await update(lines, { start_date: '2026-11-30', end_date: '2026-12-06T00:01' })).toMatchObject(
      REJECTED,
    );
  });

  it('does not check a date that is not sent', async () => {
    const lines = [...LATE_START, ...EARLY_END];
    for (const lease of [
      {},
      { name: 'renamed' },
      { start_date: '2026-12-01T09:00:00' },
      { end_date: '2026-12-02' },
    ]) {
      expect(await update(lines, lease), JSON.stringify(lease)).toMatchObject(ALLOWED);
    }
    expect(await update(lines, { end_date: '2026-12-04' })).toMatchObject(REJECTED);
  });

  it('allows the extension of a running lease that started before the earliest start', async () => {
    const lines = ['lease_dates_earliest_start = +0', `lease_dates_latest_end = +${30 * DAY}`];
    const running = { start_date: '2026-11-01T09:00:00', end_date: '2026-11-22T09:00:00' };
    expect(
      await update(lines, { start_date: running.start_date, end_date: '2026-12-21T09:00:30' }, running),
    ).toMatchObject(ALLOWED);
    expect(await update(lines, { end_date: '2026-12-21T09:00:31' }, running)).toMatchObject(REJECTED);
  });

  it('checks a date that the current lease does not have', async () => {
    const current = JSON.parse('{"start_date": null, "end_date": null}');
    const dates = { start_date: '2026-12-02T09:00:00', end_date: '2026-12-02T09:00:00' };
    const lines = [...LATE_START, ...EARLY_END];
    expect(await update(lines, dates, current)).toMatchObject(ALLOWED);
    expect(await update(lines, { ...dates, start_date: '2026-12-02T08:59' }, current)).toMatchObject(
      REJECTED,
    );
    expect(await update(lines, { ...dates, end_date: '2026-12-02T09:01' }, current)).toMatchObject(REJECTED);
  });
});
