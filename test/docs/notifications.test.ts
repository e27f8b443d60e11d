/** docs/reference/notifications.md against the events that are sent. */
import { expect, it } from 'vitest';
import {
  bypassedEvent,
  Corrections,
  correctedEvent,
  refusedEvent,
  requestEvent,
  thresholdEvent,
} from '../../src/enforcement/notifications/events.ts';
import { type CloudEvent, eventIn } from '../enforcement/notifications/cloud-events.ts';
import { aBudgetRequest, aCrossing } from '../enforcement/notifications/facts.ts';
import { pageNamed } from './markdown.ts';

const page = pageNamed('docs/reference/notifications.md');

/** The names of a value, with those of what is in it. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.slice(0, 1).map(shapeOf);
  }
  return typeof value === 'object' && value !== null
    ? Object.fromEntries(Object.entries(value).map(([name, part]) => [name, shapeOf(part)]))
    : 'a value';
}

function sent(): CloudEvent[] {
  const corrections = new Corrections();
  const owner = { projectId: 'climate', userId: 'alice' };
  const times = { start: 0n, end: 0n };
  corrections.add({ outcome: 'released', row: 1n, leaseId: 'a', ...owner, name: 'a', ...times, note: 'x' });
  const last = { request_id: 'a', operation: 'create', outcome: 'rejected', message: 'a', filter: 'a' };
  const step = { at: 0n, who: 'a', reason: 'a' };
  const granted = { amount: 1n, validUntil: 1n, budget: 1n };
  const request = aBudgetRequest({ userId: null, state: 'changed', endorsed: step, settled: step, granted });
  const project = { project_id: 'a', project_name: 'a', project_domain: 'a' };
  const named = { ...project, user_id: 'a', user_name: 'a', user_domain: 'a' };
  return [
    thresholdEvent('/', 'a', aCrossing()),
    requestEvent('/', 'a', request),
    refusedEvent('/', 'a', {
      isMixed: false,
      count: 1,
      firstAt: 'a',
      last: { ...last, ...named, lease_id: null, lease_name: 'a', time: '2026-11-21T09:00:30Z' },
    }),
    correctedEvent('/', 'a', { who: 'a', reason: null, at: new Date(0), corrections }),
    bypassedEvent('/', 'a', {
      at: new Date(0),
      records: [
        {
          request_id: 'a',
          project_id: 'ml',
          user_id: 'a',
          lease_name: 'a',
          message: 'a',
          filters: [{ filter: 'a' }],
        },
      ],
    }),
  ].map(eventIn);
}

it('shows each event as it is sent', () => {
  const shown = page.blocks.filter(({ language }) => language === 'json').map(({ text }) => eventIn(text));
  expect(shown.map(({ type }) => type)).toEqual(sent().map(({ type }) => type));
  expect(shown.map(shapeOf)).toEqual(sent().map(shapeOf));
});
