import { expect, it } from 'vitest';
import {
  Corrections,
  correctedEvent,
  refusedEvent,
  requestEvent,
  thresholdEvent,
} from '../../../src/enforcement/notifications/events.ts';
import type { Crossing } from '../../../src/ledger/outbox/crossings.ts';
import type { Reconciled } from '../../../src/ledger/reconciliation/change-lease.ts';
import { hours } from '../../filters/on-ledger.ts';
import { eventIn } from './cloud-events.ts';
import { aBudgetRequest, aCrossing } from './facts.ts';

const HOSTILE = 'a/b\u0000\n\u202e"<script>\ud800';
const AT = 1_795_258_830_000_000n;

const crossing = (userId: string | null): Crossing =>
  aCrossing(
    { userId, amount: hours('1000'), validFrom: 1_767_225_600n, validUntil: 1_798_761_600n },
    { before: hours('799.99'), taken: hours('800.00001'), at: AT },
  );

it('says which budget has passed which threshold, with amounts as decimal texts', () => {
  const event = eventIn(thresholdEvent('/here', 'id-1', crossing(null)));
  expect(event).toEqual({
    specversion: '1.0',
    id: 'id-1',
    source: '/here',
    type: 'io.blazar-enforcement.budget.threshold',
    subject: 'projects/climate',
    time: '2026-11-21T11:00:30Z',
    datacontenttype: 'application/json',
    data: {
      threshold: 80,
      project: { id: 'climate', name: null, domain: null },
      user: null,
      budget: {
        from: '2026-01-01T00:00:00Z',
        until: '2027-01-01T00:00:00Z',
        amount: '1000',
        taken: '800.0001',
        left: '199.9999',
      },
      taken_before: '799.99',
      cause: 'create',
      changed_by: 'alice',
      request_id: 'req-1',
    },
  });
  expect(eventIn(thresholdEvent('/here', 'id-1', crossing('bob'))).subject).toBe(
    'projects/climate/users/bob',
  );
});

it('says what is asked for, by whom and why, and what it has come to', () => {
  const step = { at: AT, who: HOSTILE, reason: HOSTILE.repeat(400) };
  const owner = { projectId: HOSTILE, userId: HOSTILE };
  const wish = { amount: hours('40'), validUntil: 1_798_761_600n, reason: HOSTILE };
  const asked = { at: AT, who: HOSTILE };
  const request = aBudgetRequest({ ...owner, ...wish, asked, state: 'endorsed', endorsed: step });
  const body = requestEvent('/here', 'id-1', request);
  const event = eventIn(body);
  expect(event.subject).toMatch(/^projects\/a%2Fb%00%0A[^/]+\/users\/a%2Fb%00/);
  expect(event.data).toMatchObject({
    request: '17',
    state: 'endorsed',
    amount: '40',
    until: '2027-01-01T00:00:00Z',
    reason: HOSTILE,
    endorsed: { at: '2026-11-21T11:00:30Z', by: HOSTILE },
    settled: null,
    granted: null,
  });
  expect(body).not.toContain('secret');
  expect(body.length).toBeLessThan(20_000);
});

const refusals = {
  last: {
    time: '2026-11-22T10:00:30.000Z',
    request_id: 'req-1',
    operation: 'create',
    outcome: 'rejected',
    message: 'x'.repeat(10_000),
    filter: 'MaxLeasesFilter',
    lease_id: null,
    lease_name: 'run',
    project_id: HOSTILE,
    project_name: 'Climate',
    project_domain: 'Default',
    user_id: 'alice',
  },
  isMixed: false,
  count: 3,
  firstAt: '2026-11-22T10:00:00.000Z',
};

it('bounds the texts of refusals', () => {
  const event = eventIn(refusedEvent('/here', 'id-2', refusals));
  expect(event).toMatchObject({
    type: 'io.blazar-enforcement.lease.refused',
    time: refusals.last.time,
    data: { count: 3, project: { name: 'Climate' }, last: { lease: { id: null, name: 'run' } } },
  });
  expect(JSON.stringify(event).length).toBeLessThan(4000);
});

it('names nobody of refusals that have nothing in common', () => {
  const event = eventIn(refusedEvent('/here', 'id-2', { ...refusals, isMixed: true }));
  expect(event).toMatchObject({
    subject: 'projects',
    data: { project: null, user: null, filter: null, count: 3, last: null },
  });
});

it('counts corrections, and lists the first of them', () => {
  const corrections = new Corrections();
  const lease = {
    row: 1n,
    leaseId: 'lease-1',
    projectId: 'climate',
    userId: 'alice',
    name: 'n'.repeat(5000),
    start: AT,
    end: AT,
    note: HOSTILE,
  };
  const done = (outcome: Reconciled['outcome']): Reconciled => ({ ...lease, outcome });
  corrections.add(done('left'));
  corrections.add(done('identified'));
  expect(corrections.isEmpty).toBe(true);
  for (let one = 0; one < 60; one += 1) {
    corrections.add(done(one % 2 === 0 ? 'released' : 'recorded'));
  }
  corrections.add(done('corrected'));
  const comparison = { who: 'root', reason: null, at: new Date(0), corrections };
  const event = eventIn(correctedEvent('/here', 'id-3', comparison));
  expect(event).toMatchObject({
    type: 'io.blazar-enforcement.ledger.corrected',
    subject: 'ledger',
    data: { released: 30, recorded: 30, corrected: 1, leases_left_out: 11 },
  });
  expect(event.data.leases).toHaveLength(50);
  expect(JSON.stringify(event).length).toBeLessThan(200_000);
});
