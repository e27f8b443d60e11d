import { describe, expect, it } from 'vitest';
import { isSelected, type Selection } from '../../src/decisions/selection.ts';
import { aRecord, saidBy } from '../support/decision-logs.ts';

const record = aRecord({
  time: '2026-11-20T08:00:00.500Z',
  operation: 'update',
  project_id: 'climate',
  user_id: 'alice',
  outcome: 'rejected',
  filter: 'MaxLeaseDurationFilter',
  filters: [
    saidBy('MaxLeaseDurationFilter', 'rejected'),
    saidBy('AllowingFilter', 'allowed', { audit: true }),
    saidBy('FirstAudited', 'rejected', { audit: true }),
    saidBy('SecondAudited', 'failed', { audit: true }),
  ],
});
const since = (time: string) => ({ since: Date.parse(time) });
const until = (time: string) => ({ until: Date.parse(time) });

describe('isSelected', () => {
  it.each<[string, Selection]>([
    ['nothing', {}],
    ['its project', { projects: ['genomics', 'climate'] }],
    ['its filter', { filters: ['MaxLeaseDurationFilter'] }],
    ['an audited filter that would have rejected', { filters: ['FirstAudited'] }],
    ['a second audited filter', { filters: ['SecondAudited'] }],
    ['its outcome', { outcomes: ['failed', 'rejected'] }],
    ['its operation', { operations: ['update'] }],
    ['its time', since('2026-11-20T08:00:00.500Z')],
    ['an end behind its time', until('2026-11-20T08:00:00.501Z')],
    ['all of it', { projects: ['climate'], users: ['alice'], ...since('2026-11-20T00:00:00Z') }],
  ])('takes a decision where %s is asked for', (_, selection) => {
    expect(isSelected(record, selection)).toBe(true);
  });

  it.each<[string, Selection]>([
    ['project', { projects: ['Climate'] }],
    ['user', { users: ['bob'] }],
    ['filter', { filters: ['ExternalServiceFilter'] }],
    ['outcome', { outcomes: ['allowed', 'audit'] }],
    ['filter, which only allowed it', { filters: ['AllowingFilter'] }],
    ['end, its own time', until('2026-11-20T08:00:00.500Z')],
    ['operation', { operations: ['create', 'end'] }],
    ['later time', since('2026-11-20T08:00:00.501Z')],
    ['user, though of its project', { projects: ['climate'], users: ['bob'] }],
  ])('leaves it where another %s is', (_, selection) => {
    expect(isSelected(record, selection)).toBe(false);
  });

  it('leaves a decision that no filter has made where a filter is asked for', () => {
    expect(isSelected(aRecord(), { filters: ['MaxLeaseDurationFilter'] })).toBe(false);
  });

  it('leaves one of nobody where somebody is asked for, and takes it where nobody is', () => {
    const ofNobody = aRecord({ operation: 'skypilot.launch', project_id: null, user_id: null });
    expect(isSelected(ofNobody, { operations: ['skypilot.launch'] })).toBe(true);
    expect(isSelected(ofNobody, { projects: ['null', ''] })).toBe(false);
    expect(isSelected(ofNobody, { users: ['null', ''] })).toBe(false);
  });
});
