import { describe, expect, it } from 'vitest';
import { memberQuery, memberView } from '../../../src/decisions/store/member-view.ts';
import { aRecord } from '../../support/decision-logs.ts';

const tried = {
  filter: 'TriedFilter',
  outcome: 'rejected',
  audit: true,
  message: 'Not yet.',
  duration_ms: 1,
} as const;
const broken = {
  filter: 'CallFilter',
  outcome: 'allowed-on-error',
  audit: false,
  message: null,
  duration_ms: 1,
} as const;
const strict = {
  filter: 'MaxLeasesFilter',
  outcome: 'rejected',
  audit: false,
  message: 'No.',
  duration_ms: 1,
} as const;

describe('a member', () => {
  it('sees why a lease was refused, and by what', () => {
    const refused = {
      allowed: false,
      outcome: 'rejected',
      filter: 'MaxLeasesFilter',
      message: 'No.',
    } as const;
    const view = memberView(
      aRecord({ ...refused, warnings: ['TriedFilter: Not yet.'], filters: [tried, strict] }),
    );
    expect(view).toEqual(aRecord({ ...refused, filters: [strict] }));
  });

  it.each([
    [
      'that a filter is tried',
      { outcome: 'audit', filter: 'TriedFilter', filters: [tried], warnings: ['w'] },
    ],
    [
      'that a filter let it through since it was broken',
      { outcome: 'allowed-on-error', filter: 'CallFilter', filters: [broken] },
    ],
    [
      'that a filter could not be told of an end',
      { operation: 'end', outcome: 'failed', filter: 'CallFilter', failed: true, warnings: ['w'] },
    ],
  ] as const)('does not see %s', (_, changes) => {
    const view = memberView(aRecord(changes));
    expect(view).toMatchObject({
      outcome: 'allowed',
      filter: null,
      message: null,
      failed: false,
      warnings: [],
    });
    expect(JSON.stringify(view)).not.toMatch(/Tried|on-error|"w"/);
  });

  it('cannot find them by asking for them', () => {
    const page = { limit: 1, after: undefined };
    expect(memberQuery({ ...page, outcomes: ['audit', 'allowed-on-error'] }).outcomes).toEqual([]);
    expect(memberQuery({ ...page, filters: ['TriedFilter'] })).toMatchObject({
      filters: undefined,
      outcomes: ['rejected', 'failed', 'changed'],
    });
  });
});
