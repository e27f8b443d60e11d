import { describe, expect, it } from 'vitest';
import { type DecidedRequest, decisionRecord } from '../../src/decisions/lease-record.ts';
import { type DecisionRecord, decisionRecordSchema } from '../../src/decisions/record.ts';
import { UsageEnforcement } from '../../src/index.ts';
import { aRecord, saidBy } from '../support/decision-logs.ts';
import { valuesOnly } from '../support/files.ts';
import { filterFolder, filterSource } from '../support/filter-folder.ts';
import { recordingLogger } from '../support/logger.ts';
import { createLasting, endActive, updateExtend } from '../support/requests.ts';

const FIELDS = [
  ...['time', 'request_id', 'operation', 'project_id', 'user_id', 'lease_id', 'lease_name', 'allowed'],
  ...['outcome', 'filter', 'message', 'failed', 'warnings', 'filters', 'generation', 'duration_ms'],
];
const FAILED = 'The lease could not be checked. Please try again later, or ask the operator.';

const FILTERS = {
  'yes-filter.js': filterSource('YesFilter'),
  'no-filter.js': filterSource('NoFilter', { create: "return reject('no such lease');" }),
  'broken-filter.js': filterSource('BrokenFilter', {
    create: "throw new Error('the cause');",
    end: "throw new Error('the cause');",
  }),
  'lenient-filter.js': filterSource('LenientFilter', { create: 'return { allowed: true, onError: true };' }),
  'longer-filter.js': filterSource('LongerFilter', {
    create: "return allow({ ...lease, end_date: '2054-12-31T00:00:00' });",
  }),
  'talkative-filter.js': filterSource('TalkativeFilter', { create: "return reject('x'.repeat(3000));" }),
};

type Settings = Readonly<Record<string, unknown>>;

async function load(settings: Settings): Promise<UsageEnforcement> {
  const values = { enforcement: { filters_path: [filterFolder(FILTERS)], ...settings } };
  return UsageEnforcement.load(valuesOnly(values), { logger: recordingLogger() });
}

const facts = (request: unknown) => ({
  requestId: 'req-1',
  generation: 3,
  milliseconds: 1.23456,
  request: request as DecidedRequest,
});

/** The record of a create with these settings, as the service makes it. */
async function recordOf(
  settings: Settings,
  lease: object = {},
  context: object = {},
): Promise<DecisionRecord> {
  const enforcement = await load(settings);
  const { context: whose, lease: what } = createLasting(60);
  const request = { context: { ...whose, ...context }, lease: { ...what, ...lease } };
  const decision = await enforcement.checkCreate(request, { acceptsChanges: false });
  return decisionRecord(decision, facts(request));
}

async function recordOfEnd(settings: Settings): Promise<DecisionRecord> {
  const enforcement = await load(settings);
  return decisionRecord(await enforcement.onEnd(endActive()), facts(endActive()));
}

const said: typeof saidBy = (filter, outcome, changes) =>
  saidBy(filter, outcome, { duration_ms: expect.any(Number), ...changes });

const decided = (
  allowed: boolean,
  outcome: DecisionRecord['outcome'],
  filter: string | null,
  message: string | null = null,
) => ({ allowed, outcome, failed: outcome === 'failed', filter, message });

describe('a record', () => {
  it('says in these fields what was asked, by whom, and what became of it', async () => {
    const record = await recordOf({ enabled_filters: ['YesFilter'] }, { name: 'ocean-model' });
    expect(Object.keys(record)).toEqual(FIELDS);
    expect(record).toEqual({
      ...aRecord({ request_id: 'req-1', generation: 3, duration_ms: 1.235 }),
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      filters: [said('YesFilter', 'allowed')],
    });
  });

  it.each<[string, Settings, object]>([
    [
      'of a rejection says by which filter, and what the user was told',
      { enabled_filters: ['YesFilter', 'NoFilter', 'BrokenFilter'] },
      {
        ...decided(false, 'rejected', 'NoFilter', 'no such lease'),
        filters: [said('YesFilter', 'allowed'), said('NoFilter', 'rejected', { message: 'no such lease' })],
      },
    ],
    [
      'of a failure has the generic sentence, and not the cause',
      { enabled_filters: ['BrokenFilter'] },
      {
        ...decided(false, 'failed', 'BrokenFilter', FAILED),
        filters: [said('BrokenFilter', 'failed', { message: FAILED })],
      },
    ],
    [
      'of an exempt project says so, and asks no filter',
      { enabled_filters: ['NoFilter'], exempt_projects: ['climate'] },
      {
        ...decided(true, 'exempt', null),
        filters: [],
        warnings: ['Project climate is in exempt_projects: no filter was asked.'],
      },
    ],
    [
      'of an audited rejection says what would have been',
      { enabled_filters: ['YesFilter'], audit_filters: ['NoFilter'] },
      {
        ...decided(true, 'audit', 'NoFilter'),
        warnings: ['NoFilter (tried, not enforced) would have rejected: no such lease'],
        filters: expect.arrayContaining([
          said('NoFilter', 'rejected', { audit: true, message: 'no such lease' }),
        ]),
      },
    ],
    [
      'of an audited failure says that it would have kept the lease back',
      { enabled_filters: ['YesFilter'], audit_filters: ['BrokenFilter'] },
      {
        ...decided(true, 'audit', 'BrokenFilter'),
        warnings: ['BrokenFilter (tried, not enforced) failed.'],
      },
    ],
    [
      'of a lease that was allowed on error says by which filter, also beside an audited rejection',
      { enabled_filters: ['LenientFilter'], audit_filters: ['NoFilter'] },
      {
        ...decided(true, 'allowed-on-error', 'LenientFilter'),
        filters: expect.arrayContaining([said('LenientFilter', 'allowed-on-error')]),
      },
    ],
    [
      'of a refusal keeps what audited filters would have said, and is a refusal',
      { enabled_filters: ['NoFilter', 'LenientFilter'], audit_filters: ['BrokenFilter'] },
      { outcome: 'rejected', filter: 'NoFilter' },
    ],
    [
      'of a change that the caller can’t take is a rejection by who changed the lease',
      { enabled_filters: ['LongerFilter'] },
      {
        ...decided(false, 'rejected', 'LongerFilter'),
        message: 'The lease would be allowed with other values: end_date = "2054-12-31T00:00:00".',
      },
    ],
  ])('%s', async (_, settings, expected) => {
    const record = await recordOf(settings);
    expect(record).toMatchObject(expected);
    expect(JSON.stringify(record)).not.toContain('the cause');
  });

  it('of an end says whether every filter was told', async () => {
    expect(await recordOfEnd({ enabled_filters: ['YesFilter'] })).toMatchObject({
      operation: 'end',
      ...decided(true, 'allowed', null),
      lease_id: endActive().lease.id,
      lease_name: endActive().lease.name,
      filters: [said('YesFilter', 'allowed')],
    });
    const message = 'BrokenFilter could not be told that the lease has ended.';
    expect(await recordOfEnd({ enabled_filters: ['YesFilter', 'BrokenFilter'] })).toMatchObject({
      ...decided(true, 'failed', 'BrokenFilter'),
      warnings: [message],
      filters: [said('YesFilter', 'allowed'), said('BrokenFilter', 'failed', { message })],
    });
  });
});

describe('the lease of a record', () => {
  it.each(['currentLease', 'current_lease'])(
    'is named by %s where an update does not name it',
    async (key) => {
      const { context, currentLease } = updateExtend();
      const request = { context, [key]: currentLease, lease: { end_date: '2026-12-05T09:00:00' } };
      const enforcement = await load({ enabled_filters: ['YesFilter'] });
      const decision = await enforcement.checkUpdate(request as never, { acceptsChanges: false });
      expect(decisionRecord(decision, facts(request))).toMatchObject({
        operation: 'update',
        lease_id: currentLease.id,
        lease_name: currentLease.name,
      });
      const renamed = { ...request, lease: { ...request.lease, name: 'renamed' } };
      expect(decisionRecord(decision, facts(renamed)).lease_name).toBe('renamed');
    },
  );

  it.each([
    ['a number', 5],
    ['an object', { toString: 'x' }],
    ['a list', ['a']],
    ['null', null],
    ['a truth', true],
  ])('has no name where the name is %s', async (_, name) => {
    expect(await recordOf({ enabled_filters: ['YesFilter'] }, { name, id: name })).toMatchObject({
      lease_id: null,
      lease_name: null,
    });
  });
});

describe('texts', () => {
  it('that came with the request are cut at 255 characters', async () => {
    const long = 'é'.repeat(10_000);
    const cut = `${'é'.repeat(255)}…`;
    expect(
      await recordOf(
        { enabled_filters: ['YesFilter'] },
        { id: long, name: long },
        { project_id: long, user_id: long },
      ),
    ).toMatchObject({ project_id: cut, user_id: cut, lease_id: cut, lease_name: cut });
    const fits = 'x'.repeat(255);
    expect(await recordOf({ enabled_filters: ['YesFilter'] }, { name: fits })).toMatchObject({
      lease_name: fits,
    });
  });

  it('of filters are cut at 2000 characters: message, warnings and what each filter said', async () => {
    const cut = `${'x'.repeat(2000)}…`;
    expect(await recordOf({ enabled_filters: ['TalkativeFilter'] })).toMatchObject({
      message: cut,
      filters: [{ message: cut }],
    });
    const audited = await recordOf({ enabled_filters: ['YesFilter'], audit_filters: ['TalkativeFilter'] });
    expect(audited.warnings.map(({ length }) => length)).toEqual([2001]);
  });
});

describe('decisionRecordSchema', () => {
  it('has these fields', () => {
    const names = ['project_name', 'project_domain', 'user_name', 'user_domain'];
    expect(Object.keys(decisionRecordSchema.shape)).toEqual([
      ...FIELDS.toSpliced(5, 0, ...names).toSpliced(3, 0, 'side', 'launch'),
      'trace_id',
    ]);
  });

  it('takes a record of a later version, without what it does not know', async () => {
    const record = await recordOf({ enabled_filters: ['YesFilter'] });
    expect(decisionRecordSchema.parse({ ...record, region: 'north' })).toEqual(record);
  });

  it('takes nothing where a field is missing or is something else', async () => {
    const record = await recordOf({ enabled_filters: ['NoFilter'] });
    for (const field of FIELDS) {
      const { [field as keyof DecisionRecord]: _, ...rest } = record;
      expect(decisionRecordSchema.safeParse(rest).success, `without ${field}`).toBe(false);
      expect(decisionRecordSchema.safeParse({ ...record, [field]: {} }).success, field).toBe(false);
    }
    for (const other of [null, 1, 'x', [], {}, { ...record, outcome: 'maybe' }, { ...record, time: 'now' }]) {
      expect(decisionRecordSchema.safeParse(other).success).toBe(false);
    }
  });
});
