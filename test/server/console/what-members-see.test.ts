/** Members see no filter that is only tried, none that let a lease through by failing, and nothing of how the service works. */
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { DecisionRecord } from '../../../src/decisions/record.ts';
import { aRecord, saidBy } from '../../support/decision-logs.ts';
import { giveBudgets, newLedgers } from '../../support/ledgers.ts';
import { IDS, recordedKeystone } from '../../support/recorded-identities.ts';
import { type ConsoleFixture, consoleOn } from './console-fixture.ts';
import { textOf } from './visitor.ts';

const TRIED = 'MaxLeaseDurationFilter';
const ID = 'req-7f1b2c3d-0000-4000-8000-0000000000aa';

const record = aRecord({
  time: new Date().toISOString(),
  request_id: ID,
  generation: 4711,
  outcome: 'audit',
  duration_ms: 4712,
  filter: TRIED,
  user_id: 'id-of-meg',
  lease_name: 'tried-on-me',
  warnings: [`${TRIED} (tried, not enforced) would have rejected: too long`],
  filters: [
    saidBy(TRIED, 'rejected', { audit: true, message: 'too long' }),
    saidBy('QuotaFilter', 'allowed-on-error', { message: 'away' }),
  ],
});
/** Of others, and of what is only called like the project. */
const HIDDEN = [
  { ...record, request_id: 'req-of-others', project_id: 'physics' },
  { ...record, request_id: 'req-of-namespace', operation: 'kubernetes.admission' },
  { ...record, request_id: 'req-of-workspace', operation: 'skypilot.other' },
].map((one) => ({ ...one, allowed: false, outcome: 'rejected' }) as DecisionRecord);

const newLedger = newLedgers();
let fixture: ConsoleFixture;
beforeAll(async () => {
  fixture = await consoleOn(await newLedger('sqlite'), {
    enforcement: { audit_filters: [TRIED], max_lease_duration: 60 },
  });
  for (const one of [...HIDDEN, record]) {
    fixture.recorder.recent.add(one);
  }
});
afterAll(() => fixture.close());

it('a member sees decisions of their projects alone, whatever they ask for', async () => {
  for (const query of ['', 'project=physics', 'request=req-of-others', 'outcome=refused']) {
    expect((await fixture.get('meg', `/decisions?${query}`)).html, query).not.toMatch(/req-of-\w+<\/bdi>/);
    expect((await fixture.get('reader', `/decisions?${query}`)).html).toContain('req-of-others</bdi>');
  }
  for (const { request_id } of HIDDEN) {
    expect((await fixture.get('meg', `/decisions/${request_id}`)).status).toBe(404);
    expect((await fixture.get('reader', `/decisions/${request_id}`)).status).toBe(200);
  }
});

describe('a member does not learn of a filter that is only tried', () => {
  it('from the list of decisions, also by searching for it', async () => {
    const { html } = await fixture.get('meg', '/decisions');
    expect(html).toContain('tried-on-me');
    expect(html).not.toMatch(new RegExp(`${TRIED}|4711|4712|audited filter`));
    for (const query of [`filter=${TRIED}`, 'filter=QuotaFilter', 'outcome=audit']) {
      expect((await fixture.get('meg', `/decisions?${query}`)).html).not.toContain('tried-on-me');
    }
    const seen = (await fixture.get('reader', `/decisions?filter=${TRIED}`)).html;
    expect(seen).toMatch(/tried-on-me.*generation 4711/s);
  });

  it('from the page of the decision', async () => {
    const { status, html } = await fixture.get('meg', `/decisions/${ID}`);
    expect(status).toBe(200);
    expect(html).not.toMatch(new RegExp(`${TRIED}|4711|4712|on-error|away|Decided by|Took`));
    expect((await fixture.get('reader', `/decisions/${ID}`)).html).toMatch(
      new RegExp(`generation 4711.*${TRIED}`, 's'),
    );
  });

  it('from trying a lease', async () => {
    const wish = {
      project: 'climate',
      user: 'u',
      name: 'a',
      start: '2099-01-01T00:00',
      end: '2099-01-02T00:00',
      r0_type: 'physical:host',
      r0_min: '1',
      r0_max: '1',
      do: 'try',
    };
    const texts = await Promise.all(
      (['meg', 'reader'] as const).map(async (who) => textOf((await fixture.send(who, '/try', wish)).html)),
    );
    expect(texts.map((text) => [/This lease would be/.test(text), text.includes(TRIED)])).toEqual([
      [true, false],
      [true, true],
    ]);
  });
});

it('a member does not learn what a project of others is called, by its id in the address', async () => {
  const { options: keystone } = await recordedKeystone();
  const connection = await newLedger('sqlite');
  await giveBudgets(connection, [{ projectId: IDS.physics, amount: '1', until: '2098-01-01' }]);
  const named = await consoleOn(connection, { keystone });
  onTestFinished(() => named.close());
  for (const path of ['/budgets', '/budgets/requests']) {
    const told = async (who: 'reader' | 'meg') =>
      (await named.get(who, `${path}?project=${IDS.physics}`)).html.includes('physics@Default');
    // A page does not wait long for names.
    await expect.poll(() => told('reader')).toBe(true);
    expect(await told('meg'), path).toBe(false);
  }
});
