import fc from 'fast-check';
import { type ComponentChild, type ComponentProps, h } from 'preact';
import { renderToString } from 'preact-render-to-string';
import { describe, expect, it } from 'vitest';
import { BudgetHistory, BudgetList } from '../../../src/server/console/budgets/list-pages.tsx';
import { DecisionTable } from '../../../src/server/console/decisions/decision-table.tsx';
import { ErrorContent } from '../../../src/server/console/error-page.tsx';
import { Layout } from '../../../src/server/console/layout.tsx';
import { LeasesWithSameId, LeaseView } from '../../../src/server/console/lease/lease-page.tsx';
import { CONSOLE_PAGES } from '../../../src/server/console/pages.ts';
import { Field } from '../../../src/server/console/parts/fields.tsx';
import { Pager } from '../../../src/server/console/parts/pager.tsx';
import { Text, WithNames } from '../../../src/server/console/parts/parts.tsx';
import { Chart } from '../../../src/server/console/parts/pictures.tsx';
import { ProjectsView } from '../../../src/server/console/project/projects-page.tsx';
import { LeasesTable, LimitsTable } from '../../../src/server/console/project/tables.tsx';
import { Timeline } from '../../../src/server/console/project/timeline.tsx';
import { newReservation } from '../../../src/server/console/try/lease-form.ts';
import { TryForm } from '../../../src/server/console/try/try-form.tsx';
import type { Caller } from '../../../src/server/users/caller.ts';
import { ANY_CHARACTER } from '../../support/characters.ts';
import { aRecord } from '../../support/decision-logs.ts';
import { filterSource } from '../../support/filter-folder.ts';
import { createLasting } from '../../support/requests.ts';
import { runService } from '../../support/running-service.ts';
import { rowsOf, textOf, visitor } from './visitor.ts';

const HOSTILE = [
  '</script><script>alert(1)</script>',
  '"><img src=x onerror="alert(1)">',
  "' onmouseover='alert(1)",
  '</textarea></td></tr></table></section><h1>Allowed</h1>',
  '<!--',
  ']]><![CDATA[',
  '&lt;script&gt;&#60;b&#62;&nbsp;&quot;',
  'javascript:alert(1)',
  '\u{1f600} \u05d0\u05d1 العربية',
  '<'.repeat(255),
];
const INVISIBLE = '\u0000\u0007\u001b[31m\u007f\u0085\u200e\u200f\u061c\u202a\u202e\u2066\u2069\u2028\u2029';
const page = <Item>(item: Item) => ({ items: [item], next: undefined });
const query = new URLSearchParams();

/** Views with a text of somebody else wherever there can be one, and it can be read. */
function views(text: string): ComponentChild[] {
  const caller: Caller = {
    kind: 'member',
    provenBy: 'keystone',
    identity: text,
    who: text,
    name: text,
    userId: text,
    memberships: [{ projectId: text, name: text, domain: text, isManager: true }],
  };
  const owner = { projectId: text, userId: text };
  const budget = {
    ...owner,
    id: 1n,
    validFrom: 0n,
    validUntil: 1n,
    amount: 1n,
    taken: 2n,
    left: -1n,
    version: '1',
    changedAt: 0n,
    changedBy: text,
    reason: text,
  };
  const lease: ComponentProps<typeof LeasesTable>['leases'][number] = {
    ...owner,
    row: 1n,
    leaseId: text,
    region: text,
    name: text,
    start: 0n,
    end: 1n,
    cost: 1n,
    state: 'active',
    recordedAt: 0n,
    changedAt: 1n,
    isConfirmed: false,
    resources: new Map([[text, 1]]),
    charges: [{ account: text, amount: 1n, from: 0n, until: 1n }],
  };
  const record = aRecord({
    allowed: false,
    outcome: 'rejected',
    filter: text,
    message: text,
    warnings: [text],
    project_id: text,
    user_id: text,
    lease_id: text,
    lease_name: text,
    filters: [{ filter: text, outcome: 'rejected', audit: false, message: text, duration_ms: 1 }],
  });
  const decision = { record, asked: { start: 0n, end: 1n }, replica: text };
  const entry = {
    ...owner,
    id: 1n,
    at: 0n,
    project_id: text,
    account: text,
    delta: 1n,
    lease: 1n,
    leaseId: text,
    operation: text,
    who: text,
    request_id: text,
    reason: text,
  };
  const option = {
    option: 'o',
    description: '',
    unit: 'u',
    value: text,
    hidden: false,
    default: false,
    origin: text,
  };
  const reservation = { ...newReservation('physical:host'), properties: text, hypervisor: text, min: text };
  const steps = [
    { at: 0n, decision },
    { at: 0n, entry },
  ];
  return [
    h(DecisionTable, { label: 'x', decisions: [decision] }),
    h(ErrorContent, { message: text, requestId: 'req-1', isForm: true }),
    h(Layout, { title: text, caller, csrf: 'x', pages: CONSOLE_PAGES, path: '/', children: null }),
    h(ProjectsView, {
      search: text,
      query,
      unit: 'node-hours',
      page: page({ projectId: text, openLeases: 1, budget }),
    }),
    h(BudgetList, {
      page: page(budget),
      query,
      search: text,
      project: text,
      caller,
      unit: 'node-hours',
      now: 0n,
      done: undefined,
    }),
    h(BudgetHistory, {
      page: page({ ...budget, at: 0n, budget: 1n, operation: 'set' as const, who: text }),
      query,
      unit: 'node-hours',
    }),
    h(Timeline, {
      window: { from: 0n, until: 1_000_000n },
      now: 0n,
      href: () => '/',
      rows: [{ name: text, userId: text, start: 0n, end: 1n, look: 'refused', reason: text }],
    }),
    h(LeasesTable, { leases: [lease], unit: 'node-hours' }),
    h(LeasesWithSameId, { leases: [lease] }),
    h(LeaseView, {
      ...owner,
      lease,
      leaseId: text,
      query,
      path: '/',
      unit: 'u',
      seesLedger: true,
      history: { items: steps, next: undefined },
    }),
    h(LimitsTable, {
      limits: [{ filter: text, audit: true, options: [option] }],
      isExempt: false,
      showsOrigins: true,
    }),
    h(TryForm, {
      leaseForm: {
        project: text,
        user: text,
        name: text,
        start: text,
        end: text,
        reservations: [reservation],
      },
      mistakes: new Map([['name', text]]),
      csrf: text,
      projects: [[text, text]],
      types: ['physical:host', text],
    }),
  ];
}

/** Where a text is data, such as in a field or an address. */
function inData(text: string): ComponentChild[] {
  const field = { name: 'x', label: 'x', value: text };
  const series = [{ label: text, look: 'used', form: 'line', values: [1] }] as const;
  const cursors = new URLSearchParams({ after: `x${text}`, before: `x${text}`, page: text, x: text });
  return [
    h(Field, { ...field, mistake: text, suggestions: [text] }),
    h(Field, { ...field, rows: 3 }),
    h(Field, { ...field, options: [[text, text]] }),
    h(Chart, { id: 'x', title: text, description: text, unit: text, times: [1], series }),
    h(Pager, { label: 'x', path: '/x', query: cursors, next: `x${text}` }),
  ];
}

function rendered(text: string, nodes: readonly ComponentChild[]): string[] {
  const nameOf = () => ({ name: text, domain: text });
  return nodes.map((node) => renderToString(h(WithNames, { nameOf, children: node })));
}

/** What is left without the texts: all tags, and the names of their attributes. */
const tags = (text: string) =>
  rendered(text, [...views(text), ...inData(text)])
    .join('')
    // An attribute may hold what ends a tag elsewhere.
    .match(/<(?:[^">]|"[^"]*")*>/g)
    ?.map((tag) => tag.replace(/="[^"]*"/g, '=').replace(/ selected=?/, ''))
    .join('\n');

describe('a text of somebody else', () => {
  it.for(HOSTILE)('adds no tag and no attribute, and is read as it is: %j', (text) => {
    expect(tags(text)).toBe(tags('x'));
    for (const html of rendered(text, views(text))) {
      expect(textOf(html).toLowerCase()).toContain(text.toLowerCase());
    }
  });

  it('adds none, whatever it is', () => {
    const anything = fc.oneof(
      fc.string({ unit: ANY_CHARACTER, minLength: 1 }),
      fc.string({ unit: fc.constantFrom(...'<>"\'&/!-= ax\u202e'), minLength: 1 }),
    );
    const plain = tags('x');
    fc.assert(
      fc.property(anything, (text) => {
        expect(tags(text)).toBe(plain);
      }),
    );
  });

  it('has its invisible characters named, and changes the direction of nothing else', () => {
    const html = renderToString(h(Text, { children: `a${INVISIBLE}b\tc\r\nd` }));
    expect(textOf(html)).toBe(
      'a[U+0000][U+0007][U+001B][31m[U+007F][U+0085][U+200E][U+200F][U+061C][U+202A][U+202E][U+2066][U+2069][U+2028][U+2029]b c d',
    );
    expect(html).toMatch(/^<bdi>.*<\/bdi>$/s);
    for (const view of rendered('1\u202eb\u0000c', views('1\u202eb\u0000c'))) {
      expect(textOf(view)).toContain('1[U+202E]b[U+0000]c');
      // In fields, what was written stays as it was.
      expect(view.replaceAll(/ (value|href)="[^"]*"|<textarea.*?<\/textarea>/gs, '')).not.toMatch(
        /[\u202e\0]/,
      );
    }
  });

  it('is shown so when it comes with a request: names, ids, and what a filter says', async () => {
    const { url, post } = await runService({
      enforcement: { enabled_filters: ['EchoFilter'], max_lease_duration: undefined },
      filters: {
        'echo-filter.js': filterSource('EchoFilter', { create: "return reject('No: ' + lease.name);" }),
      },
    });
    const name = `${HOSTILE[1]}\u202e"`.padEnd(255, 'w');
    const request = createLasting(60, { user_id: `${HOSTILE[0]}`, project_id: `${HOSTILE[2]}` });
    const { lease } = request;
    await post('/check-create', { ...request, lease: { ...lease, id: '<b>id</b>', name } });
    const { html } = await visitor(url).get('/decisions');
    const shown = name.replace('\u202e', '[U+202E]');
    expect(rowsOf(html, 'Decisions, newest first')[0]?.slice(1, 5)).toEqual([
      '✗ rejected create · EchoFilter',
      `${shown} <b>id</b>`,
      `${HOSTILE[2]} ${HOSTILE[0]}`,
      expect.stringContaining(`No: ${shown} requested `),
    ]);
    expect(html).not.toMatch(/<(script>|img|b>id)/);
  });
});
