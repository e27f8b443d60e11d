import { describe, expect, it } from 'vitest';
import type { Context } from '../../src/index.ts';
import { mistakes } from './loaded.ts';
import { onLedger } from './on-ledger.ts';

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
