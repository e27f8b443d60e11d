import { describe, expect, it } from 'vitest';
import type { Context, CreateRequest, Lease, UpdateRequest } from '../../src/index.ts';
import { ALLOWED, rejectedWith } from '../support/decisions.ts';
import {
  createGpuAndFloatingIp,
  createHost,
  createPhysicalHost,
  endActive,
  updateExtend,
} from '../support/requests.ts';
import { testFilter } from './contract.ts';
import { mistakes } from './loaded.ts';
import { type LedgerSetup, onLedger } from './on-ledger.ts';

testFilter({
  name: 'MaxLeasesFilter',
  ledger: true,
  options: () => ({ max_leases_per_project: 5, max_leases_per_user_by_type: { 'physical:host': 5 } }),
});

const load = (options: object, setup: Partial<LedgerSetup> = {}) =>
  onLedger({ enabled: ['MaxLeasesFilter'], ...setup, options: { ...setup.options, ...options } });

/** A lease of one day that reserves these types. */
function leaseOf(
  name: string,
  types: readonly string[] = ['physical:host'],
  { user_id = 'alice', project_id = 'climate', ...lease }: Partial<Context> & Lease = {},
): CreateRequest {
  const reservations = types.map((resource_type) => ({ resource_type, min: 1, max: 1, amount: 1 }));
  return { ...createHost({ name, reservations, ...lease }), context: { user_id, project_id } };
}

/** An update of that lease, under an id. */
function change({ context, lease }: CreateRequest, changes: Lease): UpdateRequest {
  return { context, currentLease: { ...lease, id: `id of ${String(lease.name)}` }, lease: changes };
}

describe('MaxLeasesFilter', () => {
  it('allows exactly the limit of a project, and rejects one more lease', async () => {
    const { enforcement } = await load({ max_leases_per_project: 2 });
    const users = ['alice', 'bob', 'carol'];
    const answers = [];
    for (const user_id of users) {
      answers.push(await enforcement.checkCreate(leaseOf(`of ${user_id}`, [], { user_id })));
    }
    expect(answers.map(({ allowed }) => allowed)).toEqual([true, true, false]);
    expect(answers[2]).toMatchObject({
      failed: false,
      filter: 'MaxLeasesFilter',
      message: 'Project climate has 2 pending or active leases; the most allowed is 2.',
    });
    expect(await enforcement.checkCreate(leaseOf('other', [], { project_id: 'physics' }))).toMatchObject(
      ALLOWED,
    );
  });

  it('allows exactly the limit of a user, separately in each project', async () => {
    const { enforcement } = await load({ max_leases_per_user: 1 });
    expect(await enforcement.checkCreate(leaseOf('1'))).toMatchObject(ALLOWED);
    expect(await enforcement.checkCreate(leaseOf('2'))).toMatchObject(
      rejectedWith('User alice in project climate has 1 pending or active leases; the most allowed is 1.'),
    );
    expect(await enforcement.checkCreate(leaseOf('3', [], { user_id: 'bob' }))).toMatchObject(ALLOWED);
    expect(await enforcement.checkCreate(leaseOf('4', [], { project_id: 'physics' }))).toMatchObject(ALLOWED);
  });

  it.each([
    ['max_leases_per_project_by_type', 'Project climate'],
    ['max_leases_per_user_by_type', 'User alice in project climate'],
  ])(
    'counts a lease once for a type, whatever the amount or number of reservations: %s',
    async (option, who) => {
      const { enforcement } = await load({ [option]: { 'physical:host': 1, 'virtual:floatingip': 2 } });
      const both = ['physical:host', 'virtual:floatingip', 'physical:host'];
      expect(await enforcement.checkCreate(leaseOf('both', both))).toMatchObject(ALLOWED);
      expect(await enforcement.checkCreate(leaseOf('host'))).toMatchObject(
        rejectedWith(`${who} has 1 pending or active leases with physical:host; the most allowed is 1.`),
      );
      expect(await enforcement.checkCreate(leaseOf('ip', ['virtual:floatingip']))).toMatchObject(ALLOWED);
      expect(await enforcement.checkCreate(leaseOf('ip 2', ['virtual:floatingip']))).toMatchObject(
        rejectedWith(`${who} has 2 pending or active leases with virtual:floatingip; the most allowed is 2.`),
      );
      expect(await enforcement.checkCreate(leaseOf('network', ['network']))).toMatchObject(ALLOWED);
      expect(await enforcement.checkCreate(leaseOf('nothing', []))).toMatchObject(ALLOWED);
    },
  );

  it('counts the captured requests by resource type', async () => {
    const { enforcement, balances } = await load({});
    const { project_id, user_id } = createPhysicalHost().context;
    await enforcement.checkCreate(createPhysicalHost());
    await enforcement.checkCreate(createGpuAndFloatingIp());
    expect(balances(project_id)).toEqual({
      'max_leases/project': 2n,
      'max_leases/project/type/physical:host': 2n,
      'max_leases/project/type/virtual:floatingip': 1n,
      [`max_leases/user/${user_id}`]: 2n,
      [`max_leases/user/${user_id}/type/physical:host`]: 2n,
      [`max_leases/user/${user_id}/type/virtual:floatingip`]: 1n,
    });
    await enforcement.checkUpdate(updateExtend());
    await enforcement.onEnd(endActive());
    expect(balances(project_id)).toMatchObject({ 'max_leases/project': 1n });
  });

  it('checks only the types that an update adds: a lease counts once, before and after', async () => {
    const { enforcement } = await load({
      max_leases_per_project: 1,
      max_leases_per_project_by_type: { 'physical:host': 1, 'virtual:floatingip': 0 },
    });
    const host = leaseOf('host');
    expect(await enforcement.checkCreate(host)).toMatchObject(ALLOWED);
    expect(await enforcement.checkUpdate(change(host, { end_date: '2026-12-05 09:00' }))).toMatchObject(
      ALLOWED,
    );
    expect(
      await enforcement.checkUpdate(
        change(host, { reservations: [{ resource_type: 'virtual:floatingip', amount: 1 }] }),
      ),
    ).toMatchObject(
      rejectedWith(
        'Project climate has 0 pending or active leases with virtual:floatingip; the most allowed is 0.',
      ),
    );
  });

  it('allows updates of leases from before the limit, and of leases that the ledger does not know', async () => {
    const { enforcement, balances, connection } = await load({});
    const leases = ['1', '2', '3'].map((name) => leaseOf(name));
    for (const lease of leases) {
      expect(await enforcement.checkCreate(lease)).toMatchObject(ALLOWED);
    }
    const limited = await load({ max_leases_per_project: 1 }, { connection });
    const never = leaseOf('never seen');
    for (const lease of [...leases, never]) {
      expect(
        await limited.enforcement.checkUpdate(change(lease, { end_date: '2026-12-05 09:00' })),
      ).toMatchObject(ALLOWED);
    }
    expect(balances()).toMatchObject({ 'max_leases/project': 4n });
    expect(await limited.enforcement.checkCreate(leaseOf('new'))).toMatchObject(
      rejectedWith('Project climate has 4 pending or active leases; the most allowed is 1.'),
    );
  });

  it('allows no leases with the limit 0, and any number with -1', async () => {
    const none = await load({ max_leases_per_project: 0 });
    expect(await none.enforcement.checkCreate(leaseOf('1'))).toMatchObject(
      rejectedWith('Project climate has 0 pending or active leases; the most allowed is 0.'),
    );
    const any = await load({
      max_leases_per_project: -1,
      max_leases_project_limits: { 'climate/network': -1 },
    });
    for (let lease = 1; lease <= 10; lease += 1) {
      expect(await any.enforcement.checkCreate(leaseOf(`${lease}`, ['network']))).toMatchObject(ALLOWED);
    }
  });
});

describe('unusual ids and types', () => {
  it('have their own accounts, whatever characters they contain', async () => {
    const { enforcement, balances } = await load({});
    await enforcement.checkCreate(leaseOf('1', ['b/type/c'], { user_id: 'a' }));
    await enforcement.checkCreate(leaseOf('2', ['c'], { user_id: 'a/type/b' }));
    await enforcement.checkCreate(leaseOf('3', [], { user_id: 'a/type/c' }));
    await enforcement.checkCreate(leaseOf('4', ['c'], { user_id: 'a%2Ftype%2Fb' }));
    const { 'max_leases/project': all, 'max_leases/project/type/c': types, ...own } = balances();
    expect([all, types]).toEqual([4n, 2n]);
    expect(Object.values(own), 'of users and types each').toEqual(Array(8).fill(1n));
  });

  it('are limited like any other, even with slashes, quotes or names of JavaScript properties', async () => {
    const ids = ['__proto__', 'constructor', 'a/b', "x'; DROP TABLE leases --", '%', 'π'];
    const { enforcement } = await load({ max_leases_per_project: 1, max_leases_per_user: 1 });
    for (const id of ids) {
      const who = { user_id: id, project_id: id };
      expect(await enforcement.checkCreate(leaseOf('1', [id], who)), id).toMatchObject(ALLOWED);
      expect(await enforcement.checkCreate(leaseOf('2', [id], who)), id).toMatchObject(
        rejectedWith(
          `Project ${id} has 1 pending or active leases; the most allowed is 1. User ${id} in project ${id} has 1 pending or active leases; the most allowed is 1.`,
        ),
      );
    }
  });

  it('never use the limit of another id or type', async () => {
    const { enforcement } = await load({
      max_leases_project_limits: { climate: 1, 'climate/network': 2, 'a/b/network': 1 },
      max_leases_per_project: 0,
    });
    const allowed = async (project_id: string, types: readonly string[]) =>
      (await enforcement.checkCreate(leaseOf('1', types, { project_id }), { dryRun: true })).allowed;
    expect(await allowed('climate', ['network'])).toBe(true);
    expect(await allowed('climate/network', []), 'is no project with a limit').toBe(false);
    expect(await allowed('a/b', ['network']), 'has no limit in total').toBe(false);
    expect(await allowed('a', ['b/network'])).toBe(false);
    const open = await load({ max_leases_project_limits: { 'a/b/network': 0 } });
    const judge = async (project_id: string, types: readonly string[]) =>
      (await open.enforcement.checkCreate(leaseOf('1', types, { project_id }), { dryRun: true })).allowed;
    expect(await judge('a/b', ['network'])).toBe(false);
    expect(await judge('a', ['b/network']), 'no type has a slash').toBe(true);
    expect(await judge('a/b/network', [])).toBe(true);
  });

  it('do not include types for a lease without reservations', async () => {
    const { enforcement, balances } = await load({});
    const { context, lease } = leaseOf('1', []);
    expect(await enforcement.checkCreate({ context, lease })).toMatchObject(ALLOWED);
    expect(
      await enforcement.checkCreate({ context, lease: { ...lease, name: '2', reservations: null } as never }),
    ).toMatchObject(ALLOWED);
    expect(balances()).toEqual({ 'max_leases/project': 2n, 'max_leases/user/alice': 2n });
  });
});

/** How many leases a project, or a user in it, can get, with or without a type. */
async function most(
  options: Readonly<Record<string, unknown>>,
  context: Context,
  type?: string,
): Promise<number> {
  const { enforcement } = await onLedger({ enabled: ['MaxLeasesFilter'], options });
  for (let count = 0; count < 6; count += 1) {
    const lease = {
      name: `${count}`,
      start_date: '2026-12-01 09:00',
      end_date: '2026-12-02 09:00',
      reservations: type === undefined ? [] : [{ resource_type: type, amount: 1 }],
    };
    if (!(await enforcement.checkCreate({ context, lease })).allowed) {
      return count;
    }
  }
  return 6;
}

const of = (user_id: string, project_id: string): Context => ({ user_id, project_id });

describe('limits for projects and users', () => {
  const OPTIONS = {
    max_leases_per_project: 4,
    max_leases_per_user: 3,
    max_leases_project_limits: { climate: 5, 'climate/physical:host': 4, closed: 0, open: -1 },
    max_leases_user_limits: { bob: 5, 'bob/physical:host': 1, eve: 0, root: -1 },
    max_leases_per_project_by_type: { 'physical:host': 2 },
  };

  it('override the general limits; the stricter limit decides', async () => {
    expect(await most(OPTIONS, of('alice', 'physics'))).toBe(3);
    expect(await most(OPTIONS, of('bob', 'physics'))).toBe(4);
    expect(await most(OPTIONS, of('bob', 'climate'))).toBe(5);
    expect(await most(OPTIONS, of('root', 'open'))).toBe(6);
    expect(await most(OPTIONS, of('root', 'closed'))).toBe(0);
    expect(await most(OPTIONS, of('eve', 'open'))).toBe(0);
  });

  it('of a type override only the general limits of that type', async () => {
    expect(await most(OPTIONS, of('root', 'physics'), 'physical:host')).toBe(2);
    expect(await most(OPTIONS, of('root', 'climate'), 'physical:host')).toBe(4);
    expect(await most(OPTIONS, of('bob', 'climate'), 'physical:host')).toBe(1);
    expect(await most(OPTIONS, of('root', 'climate'), 'network')).toBe(5);
  });

  it('are kept apart: a project with the name of a user is not that user', async () => {
    expect(await most({ max_leases_project_limits: { alice: 1 } }, of('alice', 'climate'))).toBe(6);
    expect(await most({ max_leases_user_limits: { climate: 1 } }, of('alice', 'climate'))).toBe(6);
  });

  it('do not exist by default', async () => {
    expect(await most({}, of('alice', 'climate'), 'physical:host')).toBe(6);
  });
});

describe('the options of MaxLeasesFilter', () => {
  it.each(['max_leases_per_project', 'max_leases_per_user'])('are whole numbers or -1: %s', async (name) => {
    for (const text of ['-2', '1.5']) {
      expect(await mistakes('MaxLeasesFilter', [`${name} = ${text}`]), text).toEqual([
        `blazar.conf:3: [enforcement] ${name}: expected a whole number or -1, got "${text}"`,
      ]);
    }
  });

  it.each(['max_leases_per_project_by_type', 'max_leases_per_user_by_type'])(
    'are pairs of type and count: %s',
    async (name) => {
      for (const [text, detail] of [
        ['physical:host', ''],
        ['physical:host:-2', ' (see "physical:host")'],
      ] as const) {
        expect(await mistakes('MaxLeasesFilter', [`${name} = ${text}`]), text).toEqual([
          `blazar.conf:3: [enforcement] ${name}: expected resource type:count pairs with commas between them, each value a whole number or -1, got "${text}"${detail}`,
        ]);
      }
    },
  );

  it.each(['project', 'user'])(
    'for a %s are pairs of an id, optionally with a type, and a count',
    async (who) => {
      const name = `max_leases_${who}_limits`;
      for (const [text, detail] of [
        ['climate:many', ''],
        ['climate:-2', ' (see "climate")'],
        ['climate/:1', ' (see "climate/")'],
        ['/network:1', ' (see "/network")'],
        ['/:1', ' (see "/")'],
      ] as const) {
        expect(await mistakes('MaxLeasesFilter', [`${name} = ${text}`]), text).toEqual([
          `blazar.conf:3: [enforcement] ${name}: expected ${who} id:count, or ${who} id/resource type:count pairs with commas between them, each value a whole number or -1, got "${text}"${detail}`,
        ]);
      }
    },
  );

  it('need a ledger: without one the configuration is refused, with a hint to run ledger upgrade', async () => {
    const [mistake, ...others] = await mistakes('MaxLeasesFilter', [
      '[ledger]',
      'connection = sqlite:///nowhere/ledger.db',
    ]);
    expect(others).toEqual([]);
    expect(mistake).toMatch(
      /^blazar\.conf:4: \[ledger\] connection: \/nowhere\/ledger\.db cannot be opened: .*ledger upgrade/,
    );
  });
});
