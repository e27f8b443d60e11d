/** `[keystone] resolve_names`: what filters, messages, decisions and the decision log know of projects and users. */
import { describe, expect, it } from 'vitest';
import { withinDeadline } from '../../src/base/deadline.ts';
import { decisionRecord } from '../../src/decisions/lease-record.ts';
import { decisionRecordSchema } from '../../src/decisions/record.ts';
import { type CheckOptions, ConfigurationError, UsageEnforcement } from '../../src/index.ts';
import { configFile, shown } from '../config/helpers.ts';
import { loadValues } from '../filters/loaded.ts';
import { filterFolder, filterSource } from '../support/filter-folder.ts';
import { giveBudgets, newLedger } from '../support/ledgers.ts';
import { recordingLogger } from '../support/logger.ts';
import { changedAnswer, IDS, recorded, recordedKeystone } from '../support/recorded-identities.ts';
import { notes } from './chain.ts';

const DAY = 86_400;

interface Setup {
  readonly enforcement: Readonly<Record<string, unknown>>;
  readonly keystone?: Readonly<Record<string, unknown>>;
  readonly ledger?: Readonly<Record<string, unknown>>;
}

async function setup({ enforcement: options, keystone: more, ledger }: Setup) {
  const keystone = await recordedKeystone();
  const { enforcement, logger } = await loadValues(
    options,
    { keystone: { ...keystone.options, ...more }, ...(ledger && { ledger }) },
    () => '2026-11-21T09:00:00Z',
  );
  const check = (project_id: string, days: number, user_id: string = IDS.alice, more: CheckOptions = {}) =>
    enforcement.checkCreate(request(project_id, days, user_id), more);
  return { keystone, logger, enforcement, check };
}

function request(project_id: string, days: number, user_id: string = IDS.alice) {
  return {
    context: { project_id, user_id },
    lease: {
      name: `${days}`,
      start_date: '2026-12-01 00:00',
      end_date: `2026-12-${String(1 + days).padStart(2, '0')} 00:00`,
      reservations: [{ resource_type: 'physical:host', min: 1, max: 1 }],
    },
  };
}

describe('every hook of a filter', () => {
  const remember = 'globalThis.notes.push(arguments[arguments.length - 1].names); return { allowed: true };';
  const NotesFilter = {
    create: remember,
    update: remember,
    end: remember,
    extra: `commitCreate() { ${remember} }\ncommitUpdate() { ${remember} }`,
  };
  const options = () => ({
    enabled_filters: ['NotesFilter'],
    filters_path: [filterFolder({ 'notes-filter.js': filterSource('NotesFilter', NotesFilter) })],
  });

  it('is given the names', async () => {
    const seen = notes();
    const { enforcement } = await setup({ enforcement: options() });
    const create = request(IDS.climate, 1);
    await enforcement.checkCreate(create);
    await enforcement.checkUpdate({ ...create, currentLease: { ...create.lease, id: 'l1' } });
    await enforcement.commitCreate(create);
    await enforcement.commitUpdate({ ...create, currentLease: { ...create.lease, id: 'l1' } });
    await enforcement.onEnd({ context: create.context, lease: { ...create.lease, id: 'l1' } });
    // A check commits as well.
    expect(seen).toHaveLength(7);
    for (const names of seen) {
      expect(names).toEqual({
        project: { name: 'climate', domain: 'Default', tags: ['hpc', 'lease-days=14'] },
        user: { name: 'alice', domain: 'Default', tags: [] },
      });
    }
  });

  it('is given none unless resolve_names is true, and Keystone is not asked', async () => {
    const seen = notes();
    const { enforcement, keystone } = await setup({
      enforcement: options(),
      keystone: { resolve_names: false },
    });
    const decision = await enforcement.checkCreate(request(IDS.climate, 1));
    expect(seen.every((names) => names === undefined)).toBe(true);
    expect(Object.keys(decision)).not.toContain('names');
    expect(keystone.asked).toEqual([]);
  });
});

describe('limits of MaxLeaseDurationFilter', () => {
  const limited = (options: Readonly<Record<string, unknown>>) =>
    setup({ enforcement: { enabled_filters: ['MaxLeaseDurationFilter'], ...options } });

  it('by name are those of the project in that domain, and named in the message', async () => {
    const { check } = await limited({
      max_lease_duration: 2 * DAY,
      max_lease_duration_project_limits: { 'climate@Default': 3 * DAY },
    });
    expect((await check(IDS.climate, 3)).allowed).toBe(true);
    expect((await check(IDS.climate, 4)).message).toBe(
      `The lease is 345600 seconds (4 days) long; the longest allowed for project climate@Default (${IDS.climate}) is 259200 seconds (3 days).`,
    );
    expect((await check(IDS.other, 3, IDS.dave)).message).toContain('the longest allowed for any lease is');
  });

  it('by name and tag give way to the general limit where Keystone does not tell, with a warning', async () => {
    const { check, keystone, logger } = await limited({
      max_lease_duration: 2 * DAY,
      max_lease_duration_exempt_project_ids: ['climate@Default'],
      max_lease_duration_tag_limits: { hpc: 9 * DAY },
    });
    await keystone.stop();
    const decision = await check(IDS.climate, 3);
    expect(decision).toMatchObject({ allowed: false, failed: false, names: {} });
    expect(decision.message).toContain('the longest allowed for any lease is 172800 seconds');
    expect(logger.lines).toContainEqual(
      expect.objectContaining({
        level: 'warn',
        fields: expect.objectContaining({ kind: 'project', reason: 'unavailable' }),
      }),
    );
  });

  it('that are known go on while Keystone is away', async () => {
    const { check, keystone } = await limited({
      max_lease_duration: 9 * DAY,
      max_lease_duration_project_limits: { 'climate@Default': 2 * DAY },
    });
    expect((await check(IDS.climate, 3)).allowed).toBe(false);
    await keystone.stop();
    expect((await check(IDS.climate, 3)).allowed).toBe(false);
    expect((await check(IDS.climate, 2)).allowed).toBe(true);
    expect((await check(IDS.physics, 9)).allowed).toBe(true);
  });

  it('are not waited for longer than the deadline of the request', async () => {
    const { enforcement, keystone } = await limited({ max_lease_duration: 2 * DAY });
    keystone.hold();
    const decision = await withinDeadline(0.4, (deadline) =>
      enforcement.checkCreate(request(IDS.climate, 1), { deadline }),
    );
    expect(decision).toMatchObject({ allowed: true, failed: false });
    keystone.release();
  });

  it('exempt the named project alone', async () => {
    const { check } = await limited({
      max_lease_duration: DAY,
      max_lease_duration_exempt_project_ids: ['climate@Default'],
    });
    expect((await check(IDS.climate, 9)).allowed).toBe(true);
    expect((await check(IDS.other, 9)).allowed).toBe(false);
  });
});

it('max_reservation_size has limits by name and tag too', async () => {
  const { enforcement, keystone } = await setup({
    enforcement: {
      enabled_filters: ['MaxReservationSizeFilter'],
      max_reservation_size: { 'physical:host': 9 },
      max_reservation_size_tag_limits: { 'hpc/physical:host': 3, 'hpc/network': 1 },
      max_reservation_size_project_limits: { 'climate@other/physical:host': 2 },
    },
  });
  const most = async (project: string) => {
    const { context, lease } = request(project, 1);
    const reservations = [{ resource_type: 'physical:host', min: 1, max: 50 }];
    return (await enforcement.checkCreate({ context, lease: { ...lease, reservations } })).message;
  };
  expect(await most(IDS.climate)).toContain(
    `project climate@Default (${IDS.climate}) with the tag hpc is 3.`,
  );
  expect(await most(IDS.other)).toContain(`project climate@other (${IDS.other}) is 2.`);
  keystone.answer(`GET /v3/projects/${IDS.physics}`, recorded('projects-forbidden'));
  expect(await most(IDS.physics)).toContain('any lease is 9.');
});

describe('limits that leases share', () => {
  it('are the same in a check and in its commit', async () => {
    const connection = await newLedger();
    for (const commit of ['check', 'request']) {
      const { enforcement, check } = await setup({
        enforcement: {
          enabled_filters: ['MaxLeasesFilter'],
          max_leases_per_project: 0,
          max_leases_project_limits: { 'climate@Default': 2 },
          max_leases_tag_limits: { 'hpc/physical:host': 1 },
        },
        ledger: { connection, commit },
      });
      const refusal = `Project climate@Default (${IDS.climate}) with the tag hpc has 1 pending or active leases with physical:host; the most allowed is 1.`;
      if (commit === 'check') {
        expect((await check(IDS.climate, 1)).allowed).toBe(true);
      }
      expect((await check(IDS.climate, 2)).message).toBe(refusal);
      expect((await enforcement.commitCreate(request(IDS.climate, 3))).message).toBe(refusal);
      expect((await check(IDS.other, 2)).message).toBe(
        `Project climate@other (${IDS.other}) has 0 pending or active leases; the most allowed is 0.`,
      );
    }
  });

  it('name project and user in messages', async () => {
    const connection = await newLedger();
    await giveBudgets(connection, [
      {
        projectId: IDS.climate,
        from: '2026-01-01T00:00:00Z',
        until: '2027-01-01T00:00:00Z',
        amount: '24',
      },
    ]);
    const { check } = await setup({
      enforcement: { enabled_filters: ['UsageBudgetFilter'] },
      ledger: { connection },
    });
    expect((await check(IDS.climate, 2)).message).toContain(
      `; project climate@Default (${IDS.climate}) has 24 node-hours left`,
    );
    expect((await check(IDS.other, 2)).message).toBe(`Project climate@other (${IDS.other}) has no budget.`);
  });
});

describe('exempt_projects', () => {
  const enforcement = {
    enabled_filters: ['MaxLeaseDurationFilter'],
    max_lease_duration: DAY,
    exempt_projects: ['climate@Default'],
  };

  it('may be named', async () => {
    const { check } = await setup({ enforcement });
    expect(await check(IDS.climate, 9)).toMatchObject({
      allowed: true,
      exempt: true,
      warnings: [`Project climate@Default (${IDS.climate}) is in exempt_projects: no filter was asked.`],
    });
    expect(await check(IDS.other, 9)).toMatchObject({ allowed: false, exempt: false });
  });

  it('are not exempt by a name that cannot be told, or that changed', async () => {
    const { check, keystone } = await setup({ enforcement });
    keystone.answer(
      `GET /v3/projects/${IDS.climate}`,
      changedAnswer('projects-climate', { name: 'weather' }),
    );
    expect(await check(IDS.climate, 9)).toMatchObject({ allowed: false, exempt: false });
    await keystone.stop();
    expect(await check(IDS.physics, 9)).toMatchObject({ allowed: false, exempt: false });
  });
});

it('the ids of exempt projects are looked up for those who see no requests, or it fails', async () => {
  const exempt_projects = ['climate@Default', 'nobody@Default', IDS.physics];
  const filters = { enabled_filters: ['MaxLeaseDurationFilter'], exempt_projects };
  const { enforcement, keystone } = await setup({ enforcement: filters });
  expect(await enforcement.exemptProjectIds()).toEqual([IDS.climate, IDS.physics]);
  await keystone.stop();
  await expect(enforcement.exemptProjectIds()).rejects.toThrow(/ECONNREFUSED|nothing was sent/);
  const off = await setup({ enforcement: filters, keystone: { resolve_names: false } });
  expect(await off.enforcement.exemptProjectIds()).toEqual(exempt_projects);
});

it('decisions and their records have the names', async () => {
  const { check, enforcement } = await setup({
    enforcement: { enabled_filters: ['MaxLeaseDurationFilter'] },
  });
  const facts = (project: string, user: string) => ({
    requestId: 'r',
    generation: 1,
    milliseconds: 1,
    request: request(project, 1, user),
  });
  const record = decisionRecord(await check(IDS.other, 1, IDS.dave), facts(IDS.other, IDS.dave));
  expect(record).toMatchObject({
    project_id: IDS.other,
    project_name: 'climate',
    project_domain: 'other',
    user_id: IDS.dave,
    user_name: 'dave',
    user_domain: 'other',
  });
  expect(decisionRecordSchema.parse(JSON.parse(JSON.stringify(record)))).toEqual(record);
  const unknown = '0'.repeat(32);
  expect(decisionRecord(await check(unknown, 1), facts(unknown, IDS.alice))).toMatchObject({
    project_name: null,
    project_domain: null,
    user_name: 'alice',
    user_domain: 'Default',
  });
  const { context, lease } = request(IDS.climate, 1);
  const report = await enforcement.onEnd({ context, lease: { ...lease, id: 'l1' } });
  expect(decisionRecord(report, facts(IDS.climate, IDS.alice))).toMatchObject({ project_name: 'climate' });
});

it('resolve_names without a Keystone is a mistake at its line', async () => {
  const file = configFile(
    '[enforcement]\nenabled_filters = MaxLeaseDurationFilter\n[keystone]\nresolve_names = true\n',
  );
  const loaded = UsageEnforcement.load(
    { environment: {}, configFiles: [file] },
    { logger: recordingLogger() },
  );
  const thrown = await loaded.catch((error: unknown) => error);
  expect(thrown).toBeInstanceOf(ConfigurationError);
  expect(shown((thrown as ConfigurationError).problems, 'error')).toEqual([
    'blazar.conf:4: [keystone] resolve_names: there is no Keystone to ask for names: set auth_url or cloud',
  ]);
});
