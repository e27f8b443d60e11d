import { describe, expect, it } from 'vitest';
import type { DecisionRecord } from '../../../src/decisions/record.ts';
import { memberQuery, memberView } from '../../../src/decisions/store/member-view.ts';
import { aRecord, saidBy } from '../../support/decision-logs.ts';

const tried = saidBy('TriedFilter', 'rejected', { audit: true, message: 'Not yet.' });
const broken = saidBy('CallFilter', 'allowed-on-error');
const strict = saidBy('MaxLeasesFilter', 'rejected', { message: 'No.' });
const refused: Partial<DecisionRecord> = {
  allowed: false,
  outcome: 'rejected',
  filter: 'MaxLeasesFilter',
  message: 'No.',
};

describe('a member', () => {
  it('sees why a lease was refused, and by what', () => {
    const view = memberView(
      aRecord({ ...refused, warnings: ['TriedFilter: Not yet.'], filters: [tried, strict] }),
    );
    expect(view).toEqual(aRecord({ ...refused, filters: [strict] }));
  });

  it.each<[string, Partial<DecisionRecord>]>([
    ['is tried', { outcome: 'audit', filter: 'TriedFilter', filters: [tried], warnings: ['w'] }],
    ['let it through, broken', { outcome: 'allowed-on-error', filter: 'CallFilter', filters: [broken] }],
    ['could not be told of an end', { operation: 'end', outcome: 'failed', failed: true, warnings: ['w'] }],
  ])('does not see that a filter %s', (_, changes) => {
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
