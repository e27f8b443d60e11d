import { h, type VNode } from 'preact';
import { renderToString } from 'preact-render-to-string';
import { describe, expect, it } from 'vitest';
import type { DecisionRecord } from '../../../src/decisions/record.ts';
import { BudgetHistory, BudgetList } from '../../../src/server/console/budgets/list-pages.tsx';
import { LeaseView, Namesakes } from '../../../src/server/console/lease/lease-view.tsx';
import { WithNames } from '../../../src/server/console/parts/parts.tsx';
import { ProjectsView } from '../../../src/server/console/project/projects-page.tsx';
import { LeasesTable, LimitsTable, RefusalsTable } from '../../../src/server/console/project/tables.tsx';
import { Timeline } from '../../../src/server/console/project/timeline.tsx';
import { newReservation } from '../../../src/server/console/try/lease-form.ts';
import { TryForm } from '../../../src/server/console/try/try-form.tsx';
import { PEOPLE } from './console-ground.ts';
import { textOf } from './visitor.ts';

const HOSTILE = [
  '</script><script>alert(1)</script>',
  '"><img src=x onerror="alert(1)">',
  '</textarea></td></tr></table><h1>Allowed</h1>',
  'javascript:alert(1)',
  '\u{1f600} \u05d0\u05d1',
  '<'.repeat(255),
];

function everywhere(text: string): string {
  const query = new URLSearchParams();
  const nameOf = () => ({ name: text, domain: text });
  const budget = {
    ...{
      id: 1n,
      projectId: text,
      userId: text,
      validFrom: 0n,
      validUntil: 1n,
      amount: 1n,
      taken: 2n,
      left: -1n,
    },
    ...{ version: '1', changedAt: 0n, changedBy: text, reason: text },
  };
  const change = { ...budget, at: 0n, budget: 1n, operation: 'set' as const, who: text };
  const lease = {
    ...{
      row: 1n,
      leaseId: text,
      region: text,
      projectId: text,
      userId: text,
      name: text,
      start: 0n,
      end: 1n,
    },
    ...{ state: 'active' as const, recordedAt: 0n, cost: 1n, resources: new Map([[text, 1]]) },
    ...{ changedAt: 1n, isConfirmed: false, charges: [{ account: text, amount: 1n, from: 0n, until: 1n }] },
  };
  const record = {
    ...{ time: '2026-12-01T09:00:00.000Z', request_id: 'r', operation: 'create', outcome: 'rejected' },
    ...{ user_id: text, lease_name: text, filter: text, message: text },
  } as unknown as DecisionRecord;
  const decided = { ...record, warnings: [text] };
  const entry = {
    ...{ id: 1n, at: 0n, project_id: text, account: text, delta: 1n, lease: 1n, operation: text, who: text },
    ...{ request_id: text, reason: text, leaseId: text, userId: text },
  };
  const option = {
    option: 'o',
    description: '',
    unit: 'u',
    value: text,
    isHidden: false,
    isDefault: false,
    origin: text,
  };
  const limit = { filter: text, audit: true, options: [option] };
  const reservation = newReservation('physical:host');
  const fields = Object.fromEntries(
    Object.entries(reservation.fields).map(([name, value]) => [name, name === 'type' ? value : text]),
  ) as typeof reservation.fields;
  const leaseForm = {
    project: text,
    user: text,
    name: text,
    start: text,
    end: text,
    reservations: [{ ...reservation, fields }],
  };
  const page = <Item>(item: Item) => ({ items: [item], next: undefined });
  const views = [
    h(ProjectsView, {
      ...{ search: text, query, unit: 'node-hours', seesAll: true },
      page: page({
        projectId: text,
        openLeases: 1,
        budget: { amount: 1n, taken: 0n, left: 1n, validUntil: 1n },
      }),
    }),
    h(BudgetList, {
      ...{
        page: page(budget),
        query,
        search: text,
        project: text,
        caller: PEOPLE.operator,
        unit: 'node-hours',
      },
      ...{ now: 0n, done: undefined },
    }),
    h(BudgetHistory, { page: page({ ...change }), query, unit: 'node-hours' }),
    h(Timeline, {
      ...{ window: { from: 0n, until: 1_000_000n }, now: 0n, href: () => '/' },
      rows: [{ name: text, userId: text, start: 0n, end: 1n, look: 'refused', reason: text }],
    }),
    h(LeasesTable, { leases: [lease], unit: 'node-hours' }),
    h(Namesakes, { leases: [lease] }),
    h(LeaseView, {
      ...{ lease, leaseId: text, latest: record, query, path: '/', unit: 'u', seesLedger: true },
      history: {
        items: [
          { at: 0n, decision: { record: decided, asked: undefined, replica: text } },
          { at: 0n, entry },
        ],
        next: undefined,
      },
    }),
    h(LimitsTable, { limits: [limit], isExempt: false, showsOrigins: true }),
    h(RefusalsTable, { refusals: [{ record, start: 0n, end: 1n, decisionPath: '/', tryPath: '/' }] }),
    h(TryForm, {
      ...{
        leaseForm,
        mistakes: new Map([['name', text]]),
        csrf: text,
        projects: [[text, text]],
        choosesUser: true,
      },
      ...{ caller: PEOPLE.operator, types: ['physical:host', text] },
    }),
  ];
  return (views as VNode[])
    .map((view) => renderToString(h(WithNames, { nameOf, children: view })))
    .join('\n');
}

/** Tags without the values of attributes. */
const tags = (text: string) =>
  everywhere(text)
    .replace(/="[^"]*"/g, '=""')
    .match(/<[^>]*>/g)
    ?.join('\n');

describe('a text of somebody else', () => {
  it.for(HOSTILE)('adds no tag and no attribute to a page of projects or budgets: %j', (text) => {
    expect(tags(text)?.replaceAll(/ selected(="")?/g, '')).toBe(
      tags('x')?.replaceAll(/ selected(="")?/g, ''),
    );
    expect(textOf(everywhere(text))).toContain(text);
  });

  it('cannot turn the reading direction, and its invisible characters are named', () => {
    const html = everywhere('a\u202eb\u0000c');
    expect(textOf(html)).toContain('a[U+202E]b[U+0000]c');
    // In fields, what was written stays as it was.
    expect(html.replaceAll(/ value="[^"]*"| href="[^"]*"|<textarea.*?<\/textarea>/gs, '')).not.toMatch(
      /[\u202e\0]/,
    );
  });
});
