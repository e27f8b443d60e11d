import { describe, expect, it } from 'vitest';
import type { Deadline, Lease, UpdateRequest } from '../../src/index.ts';
import { type LedgerSetup, onLedger } from '../filters/on-ledger.ts';
import { ALLOWED, REJECTED, rejectedWith, UNCHECKED } from '../support/decisions.ts';
import { filterSource } from '../support/filter-folder.ts';
import { breakLedger, newLedger } from '../support/ledgers.ts';
import { policyServer } from '../support/policy-server.ts';
import { createHost } from '../support/requests.ts';
import { notes } from './chain.ts';

const GENERIC = 'The lease could not be checked. Please try again later, or ask the operator.';
const UNAVAILABLE =
  'The ledger of leases cannot be read or written at the moment. Please try again later, or ask the operator.';

const CREATE = createHost();
const UPDATE: UpdateRequest = {
  context: CREATE.context,
  currentLease: { ...CREATE.lease, id: '1' },
  lease: { end_date: '2026-12-03 09:00' },
};

/** Custom ledger filters: each lease takes one place. */
const places = (name: string, claims: string) => `import { LedgerFilter, reject } from 'blazar-enforcement';
export class ${name} extends LedgerFilter {
  claims(proposal, state) { ${claims} }
}
void reject;
`;
const ONE_PLACE = (most: number) =>
  `return [{ kind: 'held', account: 'places/all', amount: 1n, limit: ${most}n, refuse: ({ taken }) => \`\${taken} of ${most} places are taken.\` }];`;

/** The setup of the custom filter `PlacesFilter` with these claims. */
const withPlaces = (claims: string) => ({ files: { PlacesFilter: places('PlacesFilter', claims) } });

const load = (enabled: readonly string[], setup: Partial<LedgerSetup> = {}) =>
  onLedger({ enabled, ...setup });

const recorded = ({ leases }: { leases: () => readonly object[] }) =>
  (leases() as { name: string; state: string; lease_id: string | null }[]).map(
    ({ name, state, lease_id }) => `${name} ${state} ${lease_id ?? 'without id'}`,
  );

describe('a lease that every filter allows', () => {
  it('is recorded after its check, and so are its update and its end, with who asked in which request', async () => {
    const chain = await load(['MaxLeasesFilter', 'UsageBudgetFilter']);
    await chain.budget({ projectId: 'climate', amount: '1000' });
    expect(await chain.enforcement.checkCreate(CREATE, { requestId: 'req-1' })).toMatchObject({
      operation: 'create',
      allowed: true,
    });
    expect(recorded(chain)).toEqual(['run open without id']);
    expect(await chain.enforcement.checkUpdate(UPDATE, { requestId: 'req-2' })).toMatchObject({
      operation: 'update',
      allowed: true,
    });
    expect(recorded(chain)).toEqual(['run open 1']);
    const ended = { ...CREATE.lease, id: '1', reservations: null } as unknown as Lease;
    expect(await chain.enforcement.onEnd({ context: CREATE.context, lease: ended })).toMatchObject({
      failed: false,
    });
    expect(recorded(chain)).toEqual(['run ended 1']);
    expect(chain.balances()).toEqual({});
    const authors = chain
      .entries()
      .map(({ operation, who, request_id }) => `${operation} ${who} ${request_id}`);
    expect([...new Set(authors)]).toEqual(['create alice req-1', 'update alice req-2', 'end alice null']);
  });

  it('ends alone, although every filter on the ledger tells of its end, and another lease looks the same', async () => {
    const chain = await load(['AFilter', 'BFilter'], {
      files: {
        AFilter: places('AFilter', ONE_PLACE(9)),
        BFilter: places('BFilter', ONE_PLACE(9)),
      },
    });
    for (let lease = 1; lease <= 2; lease += 1) {
      expect(await chain.enforcement.checkCreate(CREATE)).toMatchObject(ALLOWED);
    }
    await chain.enforcement.onEnd({ context: CREATE.context, lease: CREATE.lease });
    expect(recorded(chain).toSorted()).toEqual(['run ended without id', 'run open without id']);
  });

  it('is recorded once, even if it is sent repeatedly with the same key', async () => {
    const chain = await load(['MaxLeasesFilter'], { options: { max_leases_per_project: 1 } });
    for (let attempt = 1; attempt <= 2; attempt += 1) {
      const again = { idempotencyKey: 'k1' };
      expect(await chain.enforcement.checkCreate(CREATE, again)).toMatchObject(ALLOWED);
      expect(await chain.enforcement.commitCreate(CREATE, again)).toMatchObject(ALLOWED);
      expect(chain.balances()).toMatchObject({ 'max_leases/project': 1n });
    }
    expect(await chain.enforcement.checkUpdate(UPDATE)).toMatchObject(ALLOWED);
    for (let attempt = 1; attempt <= 2; attempt += 1) {
      expect(await chain.enforcement.commitUpdate(UPDATE)).toMatchObject(ALLOWED);
    }
    expect(recorded(chain)).toEqual(['run open 1']);
    expect(chain.entries().map(({ operation }) => operation)).toEqual(Array(4).fill('create'));
  });

  it.each([
    ['a key', CREATE, { idempotencyKey: 'k1' }],
    ['an id', { ...CREATE, lease: { ...CREATE.lease, id: '1' } }, {}],
  ])(
    'is not recorded if it is sent twice at once with %s, and a commit refuses both',
    async (_, create, again) => {
      const chain = await load(['MaxLeasesFilter', 'LastFilter'], {
        files: {
          // The second request has the time to find what the first has recorded.
          LastFilter: filterSource('LastFilter', {
            extra:
              "async commitCreate() { await new Promise((over) => setTimeout(over, 100)); return reject('no'); }",
          }),
        },
      });
      const twice = [
        chain.enforcement.checkCreate(create, again),
        chain.enforcement.checkCreate(create, again),
      ];
      expect(await Promise.all(twice)).toMatchObject([rejectedWith('no'), rejectedWith('no')]);
      expect(chain.balances()).toEqual({});
    },
  );

  it.each([
    [
      'refuse',
      "return reject('no');",
      rejectedWith('no'),
      ['recorded', 'ended', 'recorded', 'ended'],
      undefined,
    ],
    ['grant', 'return allow();', ALLOWED, ['recorded', 'ended', 'recorded'], 1n],
  ])(
    'is decided by one process after the other if two are asked with one key: one refuses, the other may %s',
    async (_, answer, decision, calls, taken) => {
      const connection = await newLedger();
      const replica = (lastAnswer: string) =>
        load(['MaxLeasesFilter', 'FirstFilter', 'LastFilter'], {
          connection,
          files: {
            FirstFilter: filterSource('FirstFilter', {
              extra: "async commitCreate() { globalThis.notes.push('recorded'); return allow(); }",
              end: "globalThis.notes.push('ended');",
            }),
            // The other process has the time to find what this one has recorded.
            LastFilter: filterSource('LastFilter', {
              extra: `async commitCreate() { await new Promise((over) => setTimeout(over, 300)); ${lastAnswer} }`,
            }),
          },
        });
      const called = notes();
      const [one, other] = [await replica("return reject('no');"), await replica(answer)];
      const again = { idempotencyKey: 'k1' };
      const first = one.enforcement.checkCreate(CREATE, again);
      await expect.poll(() => called).toEqual(['recorded']);
      const second = other.enforcement.checkCreate(CREATE, again);
      expect(await Promise.all([first, second])).toMatchObject([rejectedWith('no'), decision]);
      expect(called).toEqual(calls);
      expect(one.balances()['max_leases/project']).toBe(taken);
    },
  );

  it.each([
    ['refuses', "return reject('no');"],
    ['breaks', "throw new Error('x');"],
  ])('except the last, which %s, is not recorded', async (_, create) => {
    const chain = await load(['MaxLeasesFilter', 'LastFilter'], {
      files: { LastFilter: filterSource('LastFilter', { create, update: create }) },
    });
    expect(await chain.enforcement.checkCreate(CREATE)).toMatchObject({ allowed: false });
    expect(await chain.enforcement.checkCreate(CREATE, { explain: true })).toMatchObject({ allowed: false });
    expect(await chain.enforcement.checkUpdate(UPDATE)).toMatchObject({ allowed: false });
    expect([chain.leases(), chain.entries()]).toEqual([[], []]);
  });

  it.each([
    [['MaxLeasesFilter', 'UsageBudgetFilter'], 'MaxLeasesFilter', ['MaxLeasesFilter']],
    [['UsageBudgetFilter', 'MaxLeasesFilter'], 'UsageBudgetFilter', ['UsageBudgetFilter']],
    [['UsageBudgetFilter', 'LastFilter', 'MaxLeasesFilter'], 'UsageBudgetFilter', ['UsageBudgetFilter']],
  ])(
    'except %j, of which two refuse: the first answers, and the others are not said to allow it',
    async (enabled, filter, asked) => {
      const chain = await load(enabled, {
        options: { max_leases_per_project: 0 },
        files: { LastFilter: filterSource('LastFilter', {}) },
      });
      const refused = await chain.enforcement.checkCreate(CREATE);
      expect(refused).toMatchObject({ allowed: false, failed: false, filter });
      expect(refused.outcomes.map((outcome) => outcome.filter)).toEqual(asked);
      const explained = await chain.enforcement.checkCreate(CREATE, { explain: true });
      expect(explained.outcomes.map(({ allowed }) => allowed)).toEqual(
        enabled.map((name) => name === 'LastFilter'),
      );
      expect(explained).toMatchObject({ filter, message: refused.message });
      expect(chain.leases()).toEqual([]);
    },
  );

  it.each(['one process', 'two processes'])(
    'is charged as before if two updates of it at once, in %s, are both refused',
    async (processes) => {
      const connection = await newLedger();
      const replica = () =>
        load(['PlacesFilter', 'LastFilter'], {
          connection,
          files: {
            PlacesFilter: places(
              'PlacesFilter',
              "return [{ kind: 'held', account: 'places/all', amount: proposal.end - proposal.start, limit: 10n ** 12n, refuse: () => '' }];",
            ),
            LastFilter: filterSource('LastFilter', {
              extra:
                "async commitUpdate(context, current, { pause }) { await new Promise((over) => setTimeout(over, pause)); return reject('no'); }",
            }),
          },
        });
      const one = await replica();
      const other = processes === 'one process' ? one : await replica();
      await one.enforcement.checkCreate({ ...CREATE, lease: { ...CREATE.lease, id: '1' } });
      const before = one.balances();
      const update = (day: number): UpdateRequest => ({
        ...UPDATE,
        lease: { end_date: `2026-12-0${day} 09:00`, pause: 100 * day },
      });
      const updates = [one.enforcement.checkUpdate(update(3)), other.enforcement.checkUpdate(update(4))];
      expect(await Promise.all(updates)).toMatchObject([rejectedWith('no'), rejectedWith('no')]);
      expect(one.balances()).toEqual(before);
    },
  );

  it('with other dates that the caller cannot accept is refused by its limits, if they would refuse it', async () => {
    const shorter = "return allow({ ...lease, end_date: '2026-12-01 10:00' });";
    const chain = await load(['ShortenFilter', 'MaxLeasesFilter'], {
      options: { max_leases_per_project: 0 },
      files: { ShortenFilter: filterSource('ShortenFilter', { create: shorter }) },
    });
    expect(await chain.enforcement.checkCreate(CREATE, { acceptsChanges: false })).toMatchObject({
      allowed: false,
      filter: 'MaxLeasesFilter',
    });
  });

  it('is recorded with explain too', async () => {
    const chain = await load(['MaxLeasesFilter']);
    expect(await chain.enforcement.checkCreate(CREATE, { explain: true })).toMatchObject(ALLOWED);
    expect(recorded(chain)).toEqual(['run open without id']);
  });

  it('is recorded with the changes of filters', async () => {
    const shorter = (lease: string) => `return allow({ ...${lease}, end_date: '2026-12-01 10:00' });`;
    const chain = await load(['ShortenFilter', 'MaxLeasesFilter', 'UsageBudgetFilter'], {
      files: {
        ShortenFilter: filterSource('ShortenFilter', {
          create: shorter('lease'),
          update: shorter('newLease'),
        }),
      },
    });
    await chain.budget({ amount: '1' });
    const decision = await chain.enforcement.checkCreate(CREATE);
    expect(decision).toMatchObject({ allowed: true, changed: true, lease: { end_date: '2026-12-01 10:00' } });
    const ends_at = BigInt(Date.UTC(2026, 11, 1, 10)) * 1000n;
    expect(chain.leases()).toMatchObject([{ ends_at }]);
    expect(chain.balances()).toMatchObject({ 'usage_budget/1': 3_600_000_000n });

    const refused = await chain.enforcement.checkCreate(
      { ...CREATE, lease: { ...CREATE.lease, name: 'second' } },
      { acceptsChanges: false },
    );
    expect(refused).toMatchObject(REJECTED);
    expect(chain.leases(), 'a change that the caller cannot accept is not recorded').toHaveLength(1);
  });

  it('is not recorded for a dry run, or for an exempt project', async () => {
    const tried = await load(['MaxLeasesFilter'], { options: { max_leases_per_project: 1 } });
    for (let attempt = 1; attempt <= 2; attempt += 1) {
      const lease = { ...CREATE.lease, name: `${attempt}` };
      expect(await tried.enforcement.checkCreate({ ...CREATE, lease }, { dryRun: true })).toMatchObject(
        ALLOWED,
      );
    }
    expect(await tried.enforcement.checkUpdate(UPDATE, { dryRun: true })).toMatchObject(ALLOWED);
    expect(tried.leases()).toEqual([]);
    const exempt = await load(['MaxLeasesFilter'], {
      options: { max_leases_per_project: 0, exempt_projects: ['climate'] },
    });
    for (const decision of [
      await exempt.enforcement.checkCreate(CREATE),
      await exempt.enforcement.commitCreate(CREATE),
      await exempt.enforcement.checkUpdate(UPDATE),
      await exempt.enforcement.commitUpdate(UPDATE),
    ]) {
      expect(decision).toMatchObject({ allowed: true, exempt: true });
    }
    expect(exempt.leases()).toEqual([]);
  });
});

describe('with `commit = request`', () => {
  const ledger = { commit: 'request' };

  it('the log says when leases are allowed and none is ever committed', async () => {
    const said = async (commits: number) => {
      const chain = await load(['MaxLeasesFilter'], { ledger, options: { max_leases_per_project: 1 } });
      for (let count = 0; count < commits; count += 1) {
        await chain.enforcement.commitCreate(CREATE);
      }
      for (let count = 0; count < 50; count += 1) {
        await chain.enforcement.checkUpdate(UPDATE);
      }
      return chain.logger.lines.filter(({ message }) => message.includes('none is committed')).length;
    };
    expect([await said(0), await said(1)]).toEqual([1, 0]);
  });

  it('a commit does not call filters that record nothing', async () => {
    const chain = await load(['NeverFilter', 'MaxLeasesFilter'], {
      ledger,
      files: { NeverFilter: filterSource('NeverFilter', { create: "return reject('no');" }) },
    });
    expect(await chain.enforcement.commitCreate(CREATE)).toMatchObject({
      allowed: true,
      outcomes: [{ filter: 'MaxLeasesFilter' }],
    });
    expect(recorded(chain)).toEqual(['run open without id']);
  });
});

describe('concurrent requests with room for some of them', () => {
  it('are never all granted', async () => {
    const chain = await load(['MaxLeasesFilter', 'WaitFilter'], {
      options: { max_leases_per_project: 3 },
      files: {
        // After the ledger filter, so that all requests are checked before the first is recorded.
        WaitFilter: filterSource('WaitFilter', {
          create: 'return new Promise((resolve) => setTimeout(() => resolve(allow()), 20));',
        }),
      },
    });
    const decisions = await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        chain.enforcement.checkCreate({ ...CREATE, lease: { ...CREATE.lease, name: `${index}` } }),
      ),
    );
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(3);
    const refused = decisions.filter(({ allowed }) => !allowed);
    for (const decision of refused) {
      expect(decision).toMatchObject({
        failed: false,
        filter: 'MaxLeasesFilter',
        outcomes: [
          { filter: 'MaxLeasesFilter', allowed: false },
          { filter: 'WaitFilter', allowed: true },
        ],
      });
    }
    expect(chain.balances()).toMatchObject({ 'max_leases/project': 3n });
  });

  it('are refused with the lease unchanged, even if a filter had changed it', async () => {
    const chain = await load(['ShortenFilter'], {
      files: {
        ShortenFilter: filterSource('ShortenFilter', {
          create: "return allow({ ...lease, end_date: '2026-12-01 10:00' });",
          extra: "commitCreate() { return reject('no'); }",
        }),
      },
    });
    expect(await chain.enforcement.checkCreate(CREATE)).toMatchObject({
      allowed: false,
      changed: false,
      lease: CREATE.lease,
      message: 'no',
    });
  });
});

describe('a deadline that passes', () => {
  it('at any moment leaves a lease recorded if it is allowed, and not recorded if it is refused', async () => {
    const chain = await load(['MaxLeasesFilter']);
    let allowed = false;
    let refusals = 0;
    for (let looks = 1; !allowed; looks += 1) {
      let left = looks;
      const deadline = {
        signal: undefined,
        throwIfOver() {
          left -= 1;
          if (left <= 0) {
            throw new Error('no answer within 1 s');
          }
        },
      };
      const decision = await chain.enforcement.checkCreate(CREATE, {
        deadline: deadline as unknown as Deadline,
      });
      allowed = decision.allowed;
      refusals += allowed ? 0 : 1;
      expect(decision).toMatchObject(allowed ? {} : { failed: true, message: GENERIC });
      expect(chain.leases(), `over at look ${looks}`).toHaveLength(allowed ? 1 : 0);
    }
    // When the commit starts, and before it is written.
    expect(refusals).toBeGreaterThanOrEqual(2);
  });
});

describe('a custom ledger filter', () => {
  it('extends the class of the package, limits and records', async () => {
    const chain = await load(['PlacesFilter'], withPlaces(ONE_PLACE(1)));
    expect(await chain.enforcement.checkCreate(CREATE)).toMatchObject(ALLOWED);
    expect(chain.balances()).toEqual({ 'places/all': 1n });
    expect(
      await chain.enforcement.checkCreate({ ...CREATE, lease: { ...CREATE.lease, name: 'next' } }),
    ).toMatchObject(rejectedWith('1 of 1 places are taken.'));
  });

  it('may reject a request that it cannot compute, with its own message', async () => {
    const chain = await load(['PlacesFilter'], withPlaces("return reject('Say which place.');"));
    expect(await chain.enforcement.checkCreate(CREATE)).toMatchObject(rejectedWith('Say which place.'));
    expect(await chain.enforcement.commitCreate(CREATE)).toMatchObject({
      failed: false,
      message: 'Say which place.',
    });
    expect(chain.leases()).toEqual([]);
  });

  it.each([
    ['throws', "throw new Error('no places');"],
    ['returns nothing', ''],
    ['returns an invalid value', 'return 5;'],
    ['allows instead of claiming', 'return { allowed: true };'],
    ['rejects without a reason', 'return reject(undefined);'],
    ['claims of no kind', ONE_PLACE(1).replace('held', 'hold')],
    ['claims less than nothing', ONE_PLACE(1).replace('amount: 1n', 'amount: -1n')],
    ['returns too many claims', ONE_PLACE(1).replace(/return (.*);/, 'return Array(10_001).fill($1[0]);')],
    ['mistypes the limit', ONE_PLACE(1).replace('limit:', 'limits:')],
    ['has no bigint as limit', ONE_PLACE(1).replace('limit: 1n', 'limit: 1')],
    [
      'claims for less than no time',
      `return [{ kind: 'usage', account: 'places/all', perSecond: 1n, from: 2n, until: 1n, limit: 0n, refuse: () => 'no' }];`,
    ],
  ])('that %s refuses the lease in check and commit, and records nothing', async (_, claims) => {
    const chain = await load(['MaxLeasesFilter', 'PlacesFilter'], withPlaces(claims));
    for (const decision of [
      await chain.enforcement.checkCreate(CREATE),
      await chain.enforcement.commitCreate(CREATE),
      await chain.enforcement.checkUpdate(UPDATE),
      await chain.enforcement.commitUpdate(UPDATE),
    ]) {
      expect(decision).toMatchObject({ allowed: false, failed: true, message: GENERIC });
    }
    expect(chain.leases()).toEqual([]);
  });

  const refusing = (body: string) => ONE_PLACE(0).replace(/refuse: .* \}\]/, `refuse() { ${body} } }]`);
  const FAILING = [
    ['throws', "throw new Error('no places');", 'no places'],
    ['throws instead of a reason', refusing("throw new Error('no places');"), 'no places'],
    ['has no reason to refuse', refusing(''), 'refuse returned no text'],
  ];

  it.each(FAILING)('that %s is the only one named: the ledger has not failed', async (_, claims, error) => {
    const chain = await load(['MaxLeasesFilter', 'PlacesFilter'], withPlaces(claims));
    const { filter, outcomes } = await chain.enforcement.commitCreate(CREATE);
    expect(filter).toBe('PlacesFilter');
    expect(outcomes).toMatchObject([
      { filter: 'MaxLeasesFilter', allowed: true, failed: false },
      { filter: 'PlacesFilter', allowed: false, failed: true, message: GENERIC },
    ]);
    expect(chain.logger.lines.filter(({ level }) => level !== 'warn')).toMatchObject([
      { level: 'error', fields: { filter: 'PlacesFilter', operation: 'commit-create', error } },
      { level: 'debug' },
    ]);
  });

  it.each(FAILING)('that is audited and %s only warns, and the lease is recorded', async (_, claims) => {
    const chain = await load(['MaxLeasesFilter', 'PlacesFilter'], {
      options: { audit_filters: ['PlacesFilter'] },
      ...withPlaces(claims),
    });
    const warned = { allowed: true, warnings: ['PlacesFilter (tried, not enforced) failed.'] };
    expect(await chain.enforcement.checkCreate(CREATE)).toMatchObject(warned);
    expect(await chain.enforcement.commitUpdate(UPDATE)).toMatchObject({ allowed: true });
    expect(recorded(chain)).toEqual(['run open 1']);
  });

  it('that is audited warns for a commit too, once in the log', async () => {
    const setup = {
      options: { audit_filters: ['PlacesFilter'] },
      ...withPlaces(ONE_PLACE(0)),
    };
    const warning = 'PlacesFilter (tried, not enforced) would have rejected: 0 of 0 places are taken.';
    const checked = await load(['PlacesFilter'], setup);
    const committed = await load(['PlacesFilter'], { ...setup, ledger: { commit: 'request' } });
    for (const [chain, decision] of [
      [checked, await checked.enforcement.checkCreate(CREATE)],
      [committed, await committed.enforcement.commitCreate(CREATE)],
    ] as const) {
      expect(decision).toMatchObject({ allowed: true, warnings: [warning] });
      expect(chain.logger.lines.filter(({ message }) => message === warning)).toHaveLength(1);
      expect(chain.balances()).toEqual({ 'places/all': 1n });
    }
  });
});

describe('a ledger that cannot be read or written', () => {
  const broken = async (options: Readonly<Record<string, unknown>> = {}) => {
    const chain = await load(['MaxLeasesFilter', 'UsageBudgetFilter'], { options });
    breakLedger(chain.connection);
    return chain;
  };

  it('refuses every lease with its own message, and names the first enforced filter', async () => {
    const chain = await broken({ audit_filters: ['MaxLeasesFilter'] });
    const refused = { ...UNCHECKED, filter: 'UsageBudgetFilter', message: UNAVAILABLE };
    expect(await chain.enforcement.checkCreate(CREATE)).toMatchObject(refused);
    expect(await chain.enforcement.commitCreate(CREATE)).toMatchObject(refused);
    expect(await chain.enforcement.onEnd({ context: CREATE.context, lease: CREATE.lease })).toMatchObject({
      failed: true,
    });
  });

  it('refuses no lease if all filters that need it are audited', async () => {
    const chain = await broken({ audit_filters: ['MaxLeasesFilter', 'UsageBudgetFilter'] });
    for (const decision of [
      await chain.enforcement.checkCreate(CREATE),
      await chain.enforcement.checkCreate(CREATE, { dryRun: true }),
      await chain.enforcement.commitCreate(CREATE),
    ]) {
      expect(decision).toMatchObject({
        allowed: true,
        warnings: [
          'MaxLeasesFilter (tried, not enforced) failed.',
          'UsageBudgetFilter (tried, not enforced) failed.',
        ],
      });
    }
  });
});

describe('a filter with commit hooks', () => {
  it('is called after all filters have allowed, in the order of the chain, with read-only arguments', async () => {
    const heard = notes();
    const keeps = (name: string) =>
      filterSource(name, {
        create: `notes.push('${name} check'); return allow();`,
        extra: `
          commitCreate(context, lease) {
            notes.push('${name} commit', [context, lease].map((one) => {
              try { one.name = 'x'; return 'changed'; } catch { return 'kept'; }
            }));
            return allow();
          }
          commitUpdate(context, current, lease) { notes.push('${name}', current.id, lease.end_date); return allow(); }`,
      });
    const { enforcement } = await load(['BFilter', 'AFilter'], {
      files: { AFilter: keeps('AFilter'), BFilter: keeps('BFilter') },
    });
    expect(await enforcement.checkCreate(CREATE)).toMatchObject({ allowed: true, warnings: [] });
    await enforcement.checkUpdate(UPDATE);
    expect(heard).toEqual([
      'BFilter check',
      'AFilter check',
      'BFilter commit',
      ['kept', 'kept'],
      'AFilter commit',
      ['kept', 'kept'],
      'BFilter',
      '1',
      '2026-12-03 09:00',
      'AFilter',
      '1',
      '2026-12-03 09:00',
    ]);
  });

  it('is called at once for different leases', async () => {
    const { enforcement } = await load(['AFilter'], {
      files: {
        AFilter: filterSource('AFilter', {
          extra: `commitCreate() {
            return new Promise((resolve) => {
              if (globalThis.notes.push(resolve) === 2) globalThis.notes.forEach((answer) => answer(allow()));
            });
          }`,
        }),
      },
    });
    notes();
    const both = [enforcement.checkCreate(CREATE), enforcement.checkCreate(CREATE)];
    expect(await Promise.all(both)).toMatchObject([ALLOWED, ALLOWED]);
  });

  it.each([
    ['throws', "throw new Error('x');"],
    ['returns nothing', 'return undefined;'],
    ['changes the lease', 'return allow({ ...lease, name: 1 });'],
    ['does not answer before the deadline', 'return new Promise(() => {});'],
  ])('that %s refuses the lease', async (_, commit) => {
    const lease: Lease = CREATE.lease;
    const { enforcement } = await load(['AFilter'], {
      files: { AFilter: filterSource('AFilter', { extra: `commitCreate(context, lease) { ${commit} }` }) },
    });
    const signal = AbortSignal.timeout(commit.includes('Promise') ? 50 : 60_000);
    expect(await enforcement.checkCreate({ ...CREATE, lease }, { signal })).toMatchObject({
      ...UNCHECKED,
      filter: 'AFilter',
      message: GENERIC,
    });
  });

  it('that allows a lease on error adds a warning', async () => {
    const { enforcement } = await load(['AFilter'], {
      files: {
        AFilter: filterSource('AFilter', {
          extra: 'commitCreate() { return { allowed: true, onError: true }; }',
        }),
      },
    });
    expect(await enforcement.checkCreate(CREATE)).toMatchObject({
      allowed: true,
      warnings: ['AFilter failed, and allowed the lease since its options say so.'],
    });
  });
});

describe('the message that ends a new lease if it is refused at last', () => {
  const durable = async (commit: (connection: string, outbox: readonly object[]) => void) => {
    const service = await policyServer((_, response) => {
      commit(chain.connection, chain.query('SELECT id FROM outbox'));
      response.writeHead(204).end();
    });
    const chain = await load(['MaxLeasesFilter', 'ExternalServiceFilter'], {
      options: {
        external_service_on_end_endpoint: `${service.url}/on-end`,
        external_service_commit_create_endpoint: `${service.url}/commit`,
        external_service_delivery: 'durable',
      },
    });
    return chain;
  };

  it('is in the outbox while a service commits the lease, unless the lease was recorded before', async () => {
    const messages: number[] = [];
    const { enforcement, query } = await durable((_, outbox) => messages.push(outbox.length));
    for (let attempt = 1; attempt <= 2; attempt += 1) {
      expect(await enforcement.checkCreate(CREATE, { idempotencyKey: 'k1' })).toMatchObject(ALLOWED);
      expect(query('SELECT id FROM outbox')).toEqual([]);
    }
    expect(messages).toEqual([1, 0]);
  });

  it('refuses the lease if it cannot be removed', async () => {
    const { enforcement, balances } = await durable((connection) => breakLedger(connection, 'outbox'));
    expect(await enforcement.checkCreate(CREATE)).toMatchObject({
      ...UNCHECKED,
      filter: 'ExternalServiceFilter',
    });
    expect(balances()).toEqual({});
  });
});
