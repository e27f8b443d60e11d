import type { ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { ledgerCommand } from '../../../src/cli/ledger.ts';
import { copiedLedgers, recordLease } from '../../ledger/recorded-leases.ts';
import { recorded } from '../../server/followers/recorded-blazar.ts';
import { runInProcess } from '../../support/command-in-process.ts';
import { confFile, sectionText, temporaryFile } from '../../support/files.ts';
import { ledgerAt } from '../../support/ledgers.ts';
import { policyServer } from '../../support/policy-server.ts';
import { printed, refused, refusedWith } from '../../support/run-command.ts';
import { ValidatingKeystone } from '../../support/validating-keystone.ts';
import { commandsOn, fill } from './setup.ts';

const newLedger = copiedLedgers(fill);
const emptyLedger = copiedLedgers(async () => {});

/** As `openstack reservation lease list -f json` prints them. */
const FIRST = {
  id: 'lease-1',
  name: 'first',
  start_date: '2096-12-01T00:00:00.000000',
  end_date: '2096-12-02T00:00:00.000000',
};
const THIRD = { ...FIRST, id: 'lease-3', name: 'third' };
/** As Blazar's API answers. */
const WHOLE = {
  ...FIRST,
  id: 'lease-4',
  name: 'fourth',
  project_id: 'climate',
  user_id: 'carol',
  trust_id: 'x',
  status: 'PENDING',
  degraded: false,
  before_end_date: null,
  reservations: [
    { id: 'r', lease_id: 'lease-4', resource_type: 'physical:host', status: 'pending', min: 1, max: 2 },
  ],
  events: [],
  created_at: '2026-11-01 00:00:00',
  updated_at: null,
};
const file = (list: unknown) => temporaryFile('leases.json', JSON.stringify(list));

interface Done {
  outcome: string;
  name: string;
  note: string | null;
}

const doneIn = (stdout: string) =>
  (JSON.parse(stdout).leases as Done[]).map(({ outcome, name }) => [outcome, name]);

describe('ledger reconcile', () => {
  it('reads the list of OpenStack, and prints what it released, identified and left', async () => {
    const { ledger } = commandsOn(await newLedger());
    const list = file([THIRD, { ...FIRST, id: 'lease-9', name: 'ninth' }]);
    const stdout = printed(await ledger('reconcile', list, '--reason', 'monthly'));
    expect(stdout).toMatch(/^WHAT +ROW +LEASE +PROJECT +USER +NAME +START +END +NOTE$/m);
    expect(stdout).toMatch(/^released +#1 +lease-1 +climate +alice +first /m);
    expect(stdout).toMatch(/^identified +#3 +lease-3 +ocean +alice +third /m);
    expect(stdout).toMatch(/^left +lease-9 +ninth .*can't be recorded: the list does not say whose it is$/m);
    const shown = (await ledger('show', 'lease-1')).stdout;
    expect(shown).toMatch(/ reconcile +usage_budget\/1 +-24 node-hours .* monthly$/m);
    expect((await ledger('verify')).code).toBe(0);
  });

  it('reads an answer of the Blazar API, and records unknown leases with the claims of the filters', async () => {
    const { ledger, budget } = commandsOn(await newLedger());
    const list = file({ leases: [FIRST, THIRD, WHOLE] });
    const { stdout } = await ledger('reconcile', list, '--format', 'json');
    expect(doneIn(stdout).toSorted()).toEqual([
      ['identified', 'third'],
      ['recorded', 'fourth'],
    ]);
    expect((await budget('show', 'climate')).stdout).toMatch(
      /^#4 +lease-4 +carol +fourth +usage_budget\/1 +48 node-hours /m,
    );
    expect((await ledger('reconcile', file({ leases: [FIRST, THIRD, WHOLE] }))).stdout).toBe(
      'The ledger and the list agree.\n',
    );
  });

  it('charges a running lease until the event that ends it, if that comes after its end date', async () => {
    const { ledger, budget } = commandsOn(await newLedger());
    const reservations = WHOLE.reservations.map((one) => ({ ...one, status: 'active' }));
    const events = [{ event_type: 'end_lease', status: 'UNDONE', time: '2096-12-03T00:00:00.000000' }];
    await ledger('reconcile', file({ leases: [FIRST, THIRD, { ...WHOLE, reservations, events }] }));
    expect((await budget('show', 'climate')).stdout).toMatch(/ fourth +usage_budget\/1 +96 node-hours /m);
  });

  it('writes nothing with --dry-run, and prints the same changes', async () => {
    const connection = await newLedger();
    const { ledger } = commandsOn(connection);
    const before = (await ledger('export')).stdout;
    const dry = await ledger('reconcile', file([THIRD, WHOLE]), '--dry-run', '--format', 'json');
    const table = await ledger('reconcile', file([THIRD, WHOLE]), '--dry-run');
    expect(table.stdout).toMatch(/\nNothing was written: --dry-run\.\n$/);
    expect((await ledger('export')).stdout).toBe(before);
    const wet = await ledger('reconcile', file([THIRD, WHOLE]), '--format', 'json');
    expect(doneIn(dry.stdout)).toEqual(doneIn(wet.stdout));
    expect(doneIn(wet.stdout)).toHaveLength(3);
  });

  it('releases leases that are terminated or over in the list', async () => {
    const { ledger } = commandsOn(await newLedger());
    const list = file([
      { ...FIRST, status: 'TERMINATED' },
      { ...THIRD, start_date: '2016-01-01', end_date: '2016-01-02' },
    ]);
    const { stdout } = await ledger('reconcile', list, '--format', 'json');
    expect(doneIn(stdout)).toEqual([
      ['released', 'first'],
      ['released', 'third'],
    ]);
  });

  it.each([
    ['before its start', { start_date: '2096-12-01T12:00:00' }],
    ['after its end', { start_date: '2016-12-01', end_date: '2016-12-02' }],
    ['while it says that it is terminated', { status: 'TERMINATED' }],
  ])('leaves a lease as it is that was in use %s', async (_, change) => {
    const { ledger } = commandsOn(await newLedger());
    const reservations = WHOLE.reservations.map((one) => ({ ...one, status: 'active' }));
    const lease = { ...WHOLE, reservations };
    await ledger('reconcile', file({ leases: [FIRST, THIRD, lease] }));
    const { stdout } = await ledger(
      'reconcile',
      file({ leases: [FIRST, THIRD, { ...lease, ...change }] }),
      '--older-than',
      '0s',
    );
    expect(stdout).toBe('The ledger and the list agree.\n');
  });

  it('leaves leases that were recorded within --older-than, an hour by default', async () => {
    const connection = await newLedger();
    const book = await ledgerAt(connection, { now: () => new Date().toISOString() });
    await recordLease(book, { name: 'news', start: '2096-12-05', end: '2096-12-06' });
    await book.close();
    const { ledger } = commandsOn(connection);
    const list = file([FIRST, THIRD]);
    const careful = await ledger('reconcile', list, '--format', 'json', '--dry-run');
    expect(doneIn(careful.stdout)).toContainEqual(['left', 'news']);
    const bold = await ledger('reconcile', list, '--format', 'json', '--dry-run', '--older-than', '0s');
    expect(doneIn(bold.stdout)).toContainEqual(['released', 'news']);
  });

  it('reconciles only the projects of --project', async () => {
    const owned = { ...FIRST, project_id: 'climate', user_id: 'alice' };
    const { ledger } = commandsOn(await newLedger());
    const { stdout } = await ledger('reconcile', file([owned]), '--project', 'ocean', '--format', 'json');
    expect(doneIn(stdout)).toEqual([['released', 'third']]);
  });

  it('requires --region if the ledger does not have exactly one region', async () => {
    const connection = await newLedger();
    const book = await ledgerAt(connection);
    await recordLease(book, { name: 'far', region: 'R2', start: '2096-12-05', end: '2096-12-06' });
    await book.close();
    const { ledger } = commandsOn(connection);
    expect(await ledger('reconcile', file([FIRST]))).toEqual(
      refused('the ledger has leases of the regions "", "R2": pass --region with that of the list'),
    );
    const told = await ledger(
      'reconcile',
      file([FIRST]),
      '--region',
      'R2',
      '--release-all',
      '--format',
      'json',
    );
    expect(doneIn(told.stdout)[0]).toEqual(['released', 'far']);

    const empty = commandsOn(await emptyLedger());
    const unknown = await empty.ledger('reconcile', file([WHOLE]));
    expect(unknown).toEqual(refusedWith('knows no region yet'));
    const recorded = await empty.ledger('reconcile', file([WHOLE]), '--region', 'R', '--format', 'json');
    expect(doneIn(recorded.stdout)).toEqual([['recorded', 'fourth']]);
  });

  it('does not record leases of exempt projects', async () => {
    const { ledger } = commandsOn(await newLedger(), 'exempt_projects = climate');
    const { stdout } = await ledger('reconcile', file([FIRST, THIRD, WHOLE]), '--format', 'json');
    expect(doneIn(stdout)).toEqual([['identified', 'third']]);
  });

  it('refuses a list that has no lease of the ledger, without --release-all', async () => {
    const { ledger } = commandsOn(await newLedger());
    const other = file([WHOLE]);
    const before = (await ledger('export')).stdout;
    for (const flags of [[], ['--dry-run'], ['--project', 'ocean']]) {
      expect(await ledger('reconcile', other, ...flags)).toEqual(
        refused(/^error: none of the listed leases is in the ledger: .* With --release-all, [12] leases/),
      );
    }
    expect((await ledger('export')).stdout).toBe(before);
    const { stdout } = await ledger('reconcile', other, '--release-all', '--format', 'json');
    expect(doneIn(stdout)).toEqual([
      ['released', 'first'],
      ['released', 'third'],
      ['recorded', 'fourth'],
    ]);
  });

  it('refuses an empty list without --empty', async () => {
    const { ledger } = commandsOn(await newLedger());
    for (const list of [[], { leases: [] }]) {
      expect(await ledger('reconcile', file(list))).toEqual(
        refused('the list is empty: with --empty, every lease of the ledger is released'),
      );
    }
    const { stdout } = await ledger('reconcile', file([]), '--empty', '--format', 'json');
    expect(doneIn(stdout)).toEqual([
      ['released', 'first'],
      ['released', 'third'],
    ]);
  });

  it.each([
    ['{', 'expected JSON, as openstack reservation lease list -f json prints it'],
    ['{"leases": {}}', 'leases: expected a list of leases'],
    ['[7]', '0: expected an object with id, name, start_date and end_date'],
    [[FIRST, { ...THIRD, id: '' }], '1.id: expected a text that is not empty'],
    [{ leases: [{ ...FIRST, name: 7 }] }, 'leases.0.name: expected a text'],
    [[{ ...FIRST, start_date: 'soon' }], '0.start_date: expected an ISO 8601 date'],
    [[{ ...FIRST, end_date: '2096-11-01' }], '0.end_date: expected a date that is not before start_date'],
    [[{ ...WHOLE, reservations: [7] }], '0.reservations.0: expected an object'],
    [{ leases: [FIRST], leases_links: [] }, 'expected all leases, got one page of several'],
    [[FIRST, THIRD, FIRST], '2.id: expected each lease once, got lease-1 at 0 already'],
  ])('exits with 2 and names the mistake in the list: %#', async (list, message) => {
    const { ledger } = commandsOn(await newLedger());
    const path = temporaryFile('leases.json', typeof list === 'string' ? list : JSON.stringify(list));
    expect(await ledger('reconcile', path)).toEqual(refused(`${path}: ${message}`));
  });

  it('exits with 2 if there is no list', async () => {
    const { ledger } = commandsOn(await newLedger());
    expect(await ledger('reconcile', '/nowhere.json')).toEqual(
      refused(/^error: .*nowhere\.json: could not be read/),
    );
  });
});

const blazarLedger = copiedLedgers(async () => {});

const sends =
  (body: unknown, status = 200) =>
  (response: ServerResponse) =>
    void response.writeHead(status).end(JSON.stringify(body));

/** An empty ledger, the command on it, and a Blazar with the recorded leases. */
async function blazar(more = '') {
  const keystone = await ValidatingKeystone.start();
  keystone.tokens.set('gAAAAABour-own', 'service');
  const answers: Record<string, (response: ServerResponse) => void> = {
    '/v1/leases': sends(recorded('leases').body),
    '/v1/os-hosts/allocations': sends(recorded('allocations').body),
    '/v1/os-hosts': sends(recorded('hosts').body),
  };
  const blazar = await policyServer((request, response) =>
    (answers[request.url ?? ''] ?? sends({}, 404))(response),
  );
  const account = sectionText('keystone', { ...keystone.account, region_name: 'RegionOne' });
  const connection = await blazarLedger();
  const conf = (parts: string) =>
    confFile(`[ledger]\nconnection = ${connection}\n${parts}\n[blazar]\nendpoint = ${blazar.url}\n${more}`);
  const uses = '[enforcement]\nenabled_filters = UsageBudgetFilter\nusage_budget_required = false\n';
  const run = (file: string, args: readonly string[]) =>
    runInProcess(ledgerCommand(), [...args, '--config-file', file]);
  return {
    answers,
    keystone,
    reconcile: (...args: string[]) => run(conf(uses + account), ['reconcile', '--blazar', ...args]),
    withoutKeystone: () => run(conf(uses), ['reconcile', '--blazar']),
    withoutFilter: () => run(conf(account), ['reconcile', '--blazar']),
    /** Its open leases. */
    list: async () => {
      const { stdout } = await run(conf(uses), ['list', '--format', 'json']);
      const listed: unknown = JSON.parse(stdout);
      expect(listed).toBeInstanceOf(Array);
      return listed as unknown[];
    },
  };
}

describe('ledger reconcile --blazar', () => {
  it('prints what it would do, does it, and then has nothing to do', async () => {
    const { reconcile, list } = await blazar();
    const dry = await reconcile('--dry-run');
    expect(dry).toMatchObject({ code: 0, stderr: '' });
    expect(dry.stdout).toMatch(/^recorded .* climate +alice /m);
    expect(dry.stdout).toMatch(/\nNothing was written: --dry-run\.\n$/);
    expect(await list()).toHaveLength(0);
    const stdout = printed(await reconcile('--format', 'json'));
    expect(JSON.parse(stdout)).toMatchObject({
      dry_run: false,
      leases: Array(3).fill({ outcome: 'recorded' }),
    });
    expect(await list()).toHaveLength(3);
    expect(printed(await reconcile())).toBe('The ledger and the list agree.\n');
  });

  it('needs [keystone], a filter that uses the ledger, and no list', async () => {
    const { reconcile, withoutKeystone, withoutFilter } = await blazar();
    expect(await withoutKeystone()).toMatchObject(
      refused('--blazar needs the account for Blazar in [keystone], which has no auth_url'),
    );
    expect(await withoutFilter()).toEqual(refused(/no enabled filter uses/));
    expect(await reconcile('leases.json')).toEqual(refused('expected a file or --blazar, not both'));
    expect(await reconcile('--empty')).toEqual(refused(/--empty is for/));
    expect(await reconcile('--project', 'x')).toMatchObject({ code: 2 });
  });

  it('exits with 3, and changes nothing, when Blazar or Keystone is away', async () => {
    const { reconcile, answers, keystone, list } = await blazar();
    await reconcile();
    answers['/v1/leases'] = sends({}, 503);
    expect(await reconcile()).toEqual(refused(/^error: .*503\n$/, 3));
    await keystone.stop();
    const away = await reconcile();
    expect(away).toMatchObject(refused(/^error: .*\n$/, 3));
    expect(away.stderr).not.toMatch(/password|gAAAAAB/);
    expect(await list()).toHaveLength(3);
  });

  it('exits with 3, and says why, when leases are kept because the list is in doubt', async () => {
    const { reconcile, answers, list } = await blazar();
    await reconcile();
    answers['/v1/leases'] = sends({ leases: [] });
    answers['/v1/os-hosts/allocations'] = sends({ allocations: [] });
    const { code, stdout, stderr } = await reconcile('--older-than', '0s');
    expect({ code, stderr }).toEqual({
      code: 3,
      stderr: expect.stringMatching(/^(error: leases that are not in the list were not released: .*\n)+$/),
    });
    expect(stderr).toMatch(/Blazar lists no lease at all/);
    expect(stdout).toMatch(/^left +#1 /m);
    expect(await list()).toHaveLength(3);
  });
});
