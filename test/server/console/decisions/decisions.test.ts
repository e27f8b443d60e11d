import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { LedgerUnavailableError } from '../../../../src/base/errors.ts';
import type { DecisionSource } from '../../../../src/decisions/store/contract.ts';
import { filterSource } from '../../../support/filter-folder.ts';
import { newLedger } from '../../../support/ledgers.ts';
import { capturedText, createLasting } from '../../../support/requests.ts';
import { runService, runServiceOf } from '../../../support/running-service.ts';
import { consoleOn } from '../console-fixture.ts';
import { rowsOf, textOf, visitor } from '../visitor.ts';

const FITS = capturedText('check-create-physical-host.json');
const NINE_DAYS = capturedText('check-create-gpu-and-floating-ip.json');
const ID = 'req-7f1b2c3d-0000-4000-8000-00000000000a';
const LABEL = 'Decisions, newest first';
const SOON = { timeout: 120_000, interval: 20 };

/** Decisions of all kinds, by this process alone. */
async function decided() {
  const service = await runService({
    enforcement: { exempt_projects: ['exempt'], audit_filters: ['StrictFilter'] },
    filters: {
      'strict-filter.js': filterSource('StrictFilter', { create: "return reject('too strict');" }),
    },
  });
  await service.post('/check-create', FITS);
  await service.post('/check-create', NINE_DAYS, { 'X-Openstack-Request-Id': ID });
  await service.post('/check-create', {
    ...JSON.parse(FITS),
    context: { user_id: 'u', project_id: 'exempt' },
  });
  await service.post('/on-end', capturedText('on-end-active.json'));
  await service.post('/check-create', '{}');
  return { ...service, ...visitor(service.url) };
}

/** A service that stores all decisions. */
async function storing() {
  const values = {
    service: { port: 0, decision_store: 'all' },
    ledger: { connection: await newLedger() },
    enforcement: { enabled_filters: ['MaxLeaseDurationFilter'], max_lease_duration: 172_800 },
  };
  const service = await runServiceOf(values);
  return { ...service, ...visitor(service.url) };
}

describe('the page of decisions', () => {
  it('shows them with names, messages and warnings, the newest first', async () => {
    const { get } = await decided();
    const { html } = await get('/decisions');
    const rows = rowsOf(html, LABEL);
    expect(rows.map(([, outcome, lease]) => [outcome, lease])).toEqual([
      ['✓ allowed end', expect.stringMatching(/^climate-run-7.*-/)],
      ['– exempt create', 'climate-run-7'],
      ['✗ rejected create · MaxLeaseDurationFilter', 'gpu-and-ip'],
      ['? audit create · StrictFilter', 'climate-run-7'],
    ]);
    const [time, , , whose, message, request] = rows[2] ?? [];
    expect(time).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \d+(\.\d{3})? ms$/);
    expect(whose).toMatch(/^a0b86a98b0d343cb948e00689182efd4 c631173edec04bb7a0c3f7711153c06c$/);
    expect(message).toMatch(
      /^The lease is .*\. requested 2026-12-24 to 2027-01-02 Warning: StrictFilter .* too strict$/,
    );
    expect(request).toMatch(new RegExp(`^${ID} generation 1 ?Try this lease of gpu-and-ip at `));
    expect(rows[3]?.[4]).toBe('Warning: StrictFilter (tried, not enforced) would have rejected: too strict');
    expect(rows[1]?.[4]).toBe('Warning: Project exempt is in exempt_projects: no filter was asked.');
  });

  it('finds by every field, and by all of them together', async () => {
    const { get } = await decided();
    const found = async (query: Record<string, string>) =>
      rowsOf((await get(`/decisions?${new URLSearchParams(query)}`)).html, LABEL).map(
        ([, outcome]) => outcome,
      );
    const rejected = '✗ rejected create · MaxLeaseDurationFilter';
    expect(await found({ outcome: 'exempt', project: 'exempt', user: 'u' })).toEqual(['– exempt create']);
    expect(await found({ outcome: 'exempt', project: 'other' })).toEqual([]);
    expect(await found({ filter: 'StrictFilter' })).toEqual([rejected, '? audit create · StrictFilter']);
    expect(await found({ since: '2100-01-01T00:00' })).toEqual([]);
    expect(await found({ since: '2020-01-01', until: '2100-01-01T00:00', request: ID })).toEqual([rejected]);
    expect(await found({ until: '2020-01-01 10:00' })).toEqual([]);
  });

  it('says which fields are not valid, keeps what was written, and looks for nothing', async () => {
    const { get } = await decided();
    const { status, text, html } = await get(
      '/decisions?since=soon&outcome=odd&project=%22%3E%3Cb%3E&until=2026-13-41',
    );
    expect(status).toBe(400);
    expect(text).toContain('Nothing was searched');
    expect(text.match(/Expected a date, perhaps with a time/g)).toHaveLength(2);
    expect(text).toContain('Expected one of the outcomes.');
    expect(html).toContain('value="&quot;>&lt;b>"');
    expect(rowsOf(html, LABEL)).toEqual([]);
    expect((await get(`/decisions?user=${'x'.repeat(256)}`)).text).toContain(
      'Expected at most 255 characters.',
    );
  });

  it('shows those of all replicas in pages, forth and back', async () => {
    const { get, post } = await storing();
    for (let seconds = 1; seconds <= 120; seconds += 1) {
      await post('/check-create', createLasting(seconds));
    }
    const linkTo = (html: string, rel: string) =>
      (new RegExp(`<a href="([^"]*)" rel="${rel}"`).exec(html)?.[1] ?? '').replaceAll('&amp;', '&');
    const ids = (html: string) => [...html.matchAll(/data-key="(\S+) /g)].map(([, id]) => id);
    let first = '';
    await vi.waitFor(async () => {
      first = (await get('/decisions?outcome=allowed')).html;
      const second = await get(linkTo(first, 'next'));
      expect(ids((await get(linkTo(second.html, 'next'))).html)).toHaveLength(20);
    }, SOON);
    const second = (await get(linkTo(first, 'next'))).html;
    const third = (await get(linkTo(second, 'next'))).html;
    expect(new Set([first, second, third].flatMap(ids)).size).toBe(120);
    expect(textOf(third)).toContain('Page 3');
    expect(linkTo(third, 'next')).toBe('');
    expect(ids((await get(linkTo(third, 'prev'))).html)).toEqual(ids(second));
    expect(ids((await get(linkTo(second, 'prev'))).html)).toEqual(ids(first));
    expect(linkTo(second, 'prev')).toBe('/decisions?outcome=allowed');
    const { status, text } = await get('/decisions?after=made-up');
    expect(status).toBe(400);
    expect(text).toContain('This page of the list does not exist: start at its first page.');
  });

  it('says that the stored ones cannot be read, as the page of a project does', async () => {
    const fixture = await consoleOn(await newLedger(), {}, undefined, true);
    onTestFinished(() => fixture.close());
    const said = () =>
      Promise.all(
        ['/decisions', '/projects/climate'].map(async (path) =>
          (await fixture.get('operator', path)).html.includes('The stored decisions cannot be read'),
        ),
      );
    expect(await said()).toEqual([false, false]);
    const search = vi.spyOn(fixture.generation.decisions?.source as DecisionSource, 'search');
    search.mockRejectedValue(new LedgerUnavailableError('away'));
    expect(await said()).toEqual([true, true]);
  });
});

describe('the page of a decision', () => {
  it('shows what every filter said, and when who asked for what', async () => {
    const { get } = await decided();
    const { status, html, text } = await get(`/decisions/${ID}`);
    expect(status).toBe(200);
    expect(rowsOf(html, 'Verdicts of the filters').map((row) => row.slice(0, 3))).toEqual([
      ['MaxLeaseDurationFilter', '✗ rejected', expect.stringContaining('The lease is 777600 seconds')],
      ['StrictFilter audit: tried, not enforced', '✗ rejected', 'too strict'],
    ]);
    expect(text).toMatch(/Requested \d{4}-\d\d-\d\d( \d\d:\d\d)? to \d{4}/);
    expect(text).toContain('a0b86a98b0d343cb948e00689182efd4');
    expect(text).toContain('this process, generation 1');
  });

  it('is there for those of other replicas', async () => {
    const { get, post } = await storing();
    await post('/check-create', createLasting(864_000), { 'X-Openstack-Request-Id': ID });
    await expect
      .poll(async () => (await get(`/decisions/${ID}`)).text)
      .toMatch(/Decided by \S+\/\d+\S*, generation 1/);
  });

  it.for(['req-00000000-0000-4000-8000-000000000000', '%3Cb%3E', 'x'.repeat(300), '%00'])(
    'is not found for %s',
    async (id) => {
      const { get } = await decided();
      const { status, text, html } = await get(`/decisions/${id}`);
      expect(status).toBe(404);
      expect(text).toContain('There is no decision with this request id');
      expect(html).not.toContain('<b>');
    },
  );
});
