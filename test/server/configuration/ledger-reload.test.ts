import { readdirSync, readlinkSync } from 'node:fs';
import { describe, expect, it, vi } from 'vitest';
import { temporaryFile } from '../../support/files.ts';
import { filterFolder, filterSource } from '../../support/filter-folder.ts';
import { newLedger } from '../../support/ledgers.ts';
import { createLasting } from '../../support/requests.ts';
import { runServiceOnFile } from '../../support/running-service.ts';

/** How often this process has the file of a ledger open: the ledger itself, and a moment later the thread of decisions. */
function openings(connection: string): number {
  const file = connection.slice('sqlite://'.length);
  return readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === file;
    } catch {
      return false;
    }
  }).length;
}

async function onLedger(first: string, filters = 'MaxLeasesFilter', folder = filterFolder({})) {
  const written = (connection: string) =>
    `[enforcement]\nfilters_path = ${folder}\nenabled_filters = ${filters}\nmax_leases_per_project = 1\n[service]\nport = 0\n[ledger]\nconnection = ${connection}\n`;
  const { change, ...running } = await runServiceOnFile(written(first));
  return { ...running, change: (connection: string) => change(written(connection)) };
}

describe('a reload with a ledger', () => {
  it('keeps the same one: recorded leases count', async () => {
    const connection = await newLedger();
    const { post, change } = await onLedger(connection);
    expect(await post('/check-create', createLasting(60))).toMatchObject({ status: 204 });
    for (let reload = 1; reload <= 5; reload += 1) {
      expect(await change(connection)).toBe(true);
    }
    expect(await post('/check-create', createLasting(61))).toMatchObject({ status: 403 });
    // SQLite keeps one that it has closed for as long as another one holds locks on the same file, and uses it again. The thread of decisions has one.
    await expect.poll(() => openings(connection)).toBeLessThanOrEqual(5);
  });

  it('closes the previous one after its last request, which is recorded there', async () => {
    const authenticators: (() => void)[] = [];
    vi.stubGlobal('authenticator', () => new Promise<void>((open) => authenticators.push(open)));
    const create = 'return authenticator().then(() => allow());';
    const folder = filterFolder({ 'slow-filter.js': filterSource('SlowFilter', { create }) });
    const before = await newLedger();
    const after = await newLedger();
    const { post, change } = await onLedger(before, 'SlowFilter, MaxLeasesFilter', folder);

    const waiting = post('/check-create', createLasting(60));
    await expect.poll(() => authenticators).toHaveLength(1);
    expect(await change(after)).toBe(true);
    expect(Math.min(openings(before), openings(after))).toBeGreaterThan(0);
    authenticators[0]?.();
    expect(await waiting).toMatchObject({ status: 204 });
    await expect.poll(() => openings(before)).toBe(0);

    const next = post('/check-create', createLasting(60));
    await expect.poll(() => authenticators).toHaveLength(2);
    authenticators[1]?.();
    expect(await next).toMatchObject({ status: 204 });
    expect(await change(before)).toBe(true);
    const full = post('/check-create', createLasting(61));
    await expect.poll(() => authenticators).toHaveLength(3);
    authenticators[2]?.();
    expect(await full, 'the waiting one was recorded in the ledger that it had found').toMatchObject({
      status: 403,
    });
  });

  it('to an unusable one is refused, with file and line, and the previous one stays in use', async () => {
    const good = await newLedger();
    const { post, change, conf, request, logger } = await onLedger(good);
    const empty = temporaryFile('empty.db', '');
    for (const [connection, message] of [
      ['sqlite:///nowhere/ledger.db', '/nowhere/ledger.db cannot be opened'],
      [`sqlite://${empty}`, '.*ledger upgrade'],
      ['mysql://db/ledger', 'expected sqlite:'],
    ] as const) {
      expect(await change(connection), connection).toBe(false);
      const { json } = await request('/readyz');
      expect(json).toMatchObject({ generation: 1, problems: [`${conf}:8: [ledger] connection: not valid`] });
      const said = expect.stringMatching(`^\\S+:8: \\[ledger\\] connection: ${message}`);
      expect(logger.lines).toContainEqual(expect.objectContaining({ level: 'error', message: said }));
    }
    expect(openings(good)).toBeGreaterThan(0);
    expect(openings(`sqlite://${empty}`)).toBe(0);
    expect(await post('/check-create', createLasting(60))).toMatchObject({ status: 204 });
    expect(await post('/check-create', createLasting(61))).toMatchObject({ status: 403 });
  });
});
