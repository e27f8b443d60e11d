/** "A day longer?": the form for a change of a lease, without scripts. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { giveBudgets, newLedgers } from '../../../support/ledgers.ts';
import { type ConsoleFixture, consoleOn } from '../console-fixture.ts';
import { rowsOf, suggestedIn, textOf } from '../visitor.ts';

const newLedger = newLedgers();
let now = '2026-11-22T12:00:00Z';
let fixture: ConsoleFixture;
const HOSTILE = '<b>/"?#%';
const PATH = '/leases/ours/change';

beforeAll(async () => {
  const connection = await newLedger('sqlite');
  await giveBudgets(
    connection,
    [
      { amount: '100', until: '2027-01-01' },
      { projectId: 'physics', amount: '100', until: '2027-01-01' },
    ],
    { now: () => now },
  );
  fixture = await consoleOn(connection, {}, () => now);
  await record('climate', 'ours');
  await record('climate', HOSTILE);
  await record('physics', 'theirs');
});
afterAll(() => fixture.close());

async function record(project_id: string, id: string): Promise<void> {
  const made = await fixture.generation.enforcement.checkCreate({
    context: { user_id: 'id-of-bob', project_id },
    lease: {
      id,
      name: `run ${id}`,
      start_date: '2026-12-01T09:00:00',
      end_date: '2026-12-01T19:00:00',
      reservations: [
        { id: 'h', resource_type: 'physical:host', min: 1, max: 2 },
        { id: 'a', resource_type: 'virtual:floatingip', amount: 3 },
      ],
    },
  });
  expect(made.allowed).toBe(true);
}

const AS_IT_IS = {
  start: '2026-12-01T09:00',
  end: '2026-12-01T19:00',
  r0_min: '1',
  r0_max: '2',
  r1_amount: '3',
  do: 'try',
};

describe('the form for a change', () => {
  it('is linked from the leases of the project, unless they have ended', async () => {
    const { html } = await fixture.get('meg', '/projects/climate?from=2026-12-01&until=2026-12-03');
    expect(html).toContain(`href="${PATH}"`);
    expect(html).toContain(`href="/leases/${encodeURIComponent(HOSTILE)}/change"`);
    expect((await fixture.get('meg', `/leases/${encodeURIComponent(HOSTILE)}/change`)).status).toBe(200);
  });

  it('begins with the lease as it is, or with what its address says', async () => {
    const { status, html } = await fixture.get('meg', PATH);
    expect(status).toBe(200);
    for (const [name, value] of Object.entries(AS_IT_IS).filter(([name]) => name !== 'do')) {
      expect(html).toMatch(new RegExp(`name="${name}"[^>]* value="${value}"`));
    }
    const { html: other } = await fixture.get('meg', `${PATH}?end=2026-12-05T10:00`);
    expect(other).toMatch(/name="end"[^>]* value="2026-12-05T10:00"/);
  });

  it('tells what a day more costs, what is left after it, and how to get it', async () => {
    const { status, html } = await fixture.send('meg', PATH, { ...AS_IT_IS, end: '2026-12-02T19:00' });
    const text = textOf(html);
    expect(status).toBe(200);
    expect(text).toContain('This change would be allowed now');
    expect(rowsOf(html, 'Cost')[0]?.slice(1)).toEqual(['at most 48', '100', '40', '12']);
    expect(html).toContain('Additional cost');
    expect(text).toContain("openstack reservation lease update \\ --end-date '2026-12-02 19:00' \\ ours");
    expect(fixture.recorder.recent.list()).toEqual([]);
    const { html: fewer } = await fixture.send('meg', PATH, { ...AS_IT_IS, r0_max: '1' });
    expect(rowsOf(fewer, 'Cost')[0]?.slice(1)).toEqual(['-10', '100', '40', '70']);
    expect(textOf(fewer)).toContain('--reservation id=RESERVATION_ID,min=1,max=1');
    expect(textOf(fewer)).toContain('can be used once Blazar has shown the changed lease');
  });

  it('tells why a change would be refused, and fills in one that would be allowed', async () => {
    const { html } = await fixture.send('meg', PATH, { ...AS_IT_IS, end: '2026-12-09T19:00' });
    expect(textOf(html)).toContain('This change would be refused by UsageBudgetFilter');
    expect(html).toContain(`<form method="post" action="${PATH}">`);
    const again = await fixture.send('meg', PATH, { ...suggestedIn(html), do: 'try' });
    expect(textOf(again.html)).toContain('This change would be allowed now');
  });

  it('keeps what was written, and is told at the field what is wrong', async () => {
    for (const [field, value] of [
      ['end', 'soon'],
      ['start', ''],
      ['start', '2026-11-01T09:00'],
      ['r0_min', '<b>'],
      ['r1_amount', '1e3'],
    ] as const) {
      const { status, html } = await fixture.send('meg', PATH, { ...AS_IT_IS, [field]: value });
      expect([field, status]).toEqual([field, 400]);
      expect(html).toContain(`id="${field}-mistake"`);
      expect(html).toMatch(
        new RegExp(`name="${field}"[^>]* value${value && `="${value.replace('<', '&lt;')}"`}`),
      );
    }
    const same = await fixture.send('meg', PATH, AS_IT_IS);
    expect([same.status, textOf(same.html)]).toEqual([400, expect.stringContaining('Nothing would change')]);
  });

  it('has no field for the start of a lease that has begun, and keeps it', async () => {
    now = '2026-12-01T12:00:30Z';
    try {
      const { html } = await fixture.get('meg', PATH);
      expect(html).not.toContain('name="start"');
      const { start: _, ...rest } = AS_IT_IS;
      const longer = await fixture.send('meg', PATH, { ...rest, end: '2026-12-01T20:00' });
      expect(rowsOf(longer.html, 'Cost')[0]?.[1]).toBe('at most 2');
      expect((await fixture.send('meg', PATH, { ...rest, start: '2026-12-01T13:00' })).status).toBe(400);
    } finally {
      now = '2026-11-22T12:00:00Z';
    }
  });
});

describe('who sees the form', () => {
  it('is not told whether a lease of another project exists', async () => {
    const pages = await Promise.all(
      ['theirs', 'nowhere', '..%2f..', '%00', 'x'.repeat(300)].map((id) =>
        fixture.get('meg', `/leases/${id}/change`),
      ),
    );
    const [theirs, nowhere] = pages.map(({ html }) => html.replaceAll(/req-[\w-]+/g, ''));
    expect(pages[0]?.status).toBe(404);
    expect(theirs).toBe(nowhere);
    expect(pages.every(({ status }) => status >= 400 && status < 500)).toBe(true);
    expect((await fixture.send('meg', '/leases/theirs/change', AS_IT_IS)).status).toBe(404);
    expect((await fixture.send('meg', PATH, { ...AS_IT_IS, r0_max: '1', csrf: 'other' })).status).toBe(403);
    expect((await fixture.get('operator', '/leases/theirs/change')).status).toBe(200);
    expect((await fixture.send('reader', '/leases/theirs/change', { ...AS_IT_IS, r0_max: '1' })).status).toBe(
      200,
    );
  });
});
