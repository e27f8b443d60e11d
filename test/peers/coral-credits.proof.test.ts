/** ExternalServiceFilter and `conformance` beside a real coral-credits: what it charges is what the filter has allowed. */
import { randomUUID } from 'node:crypto';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { PROJECT_ID } from '../../src/conformance/leases.ts';
import { runConformance } from '../../src/conformance/run.ts';
import { UsageEnforcement } from '../../src/enforcement/enforcement.ts';
import { Chance } from '../simulation/schedule.ts';
import { recordingLogger } from '../support/logger.ts';
import { peerProgram } from '../support/peers.ts';
import { RealCoralCredits } from './coral-credits.ts';

const program = peerProgram('CORAL_CREDITS_PEER');
const SEED = Number(process.env.CORAL_SEED ?? 1);
const PROJECT = 'a0b86a98b0d343cb948e00689182efd4';
const USER = 'c631173edec04bb7a0c3f7711153c06c';
const HOUR = 3_600_000;
const CREDITS = { VCPU: 1000, MEMORY_MB: 1_000_000 };

const context = {
  user_id: USER,
  project_id: PROJECT,
  region_name: 'RegionOne',
  auth_url: 'https://keystone.example.org:5000/v3',
};

interface Asked {
  readonly vcpus: number;
  readonly hours: number;
  readonly name?: string;
  readonly id?: string;
}

/** Begins in a week: an end gives everything back. */
const begin = Math.ceil(Date.now() / HOUR) * HOUR + 7 * 24 * HOUR;

/** As the Blazar of StackHPC sends it: with what it takes of each resource class. */
function lease({ vcpus, hours, name = 'run-7', id }: Asked) {
  return {
    ...(id !== undefined && { id }),
    name,
    start_date: date(begin),
    end_date: date(begin + hours * HOUR),
    reservations: [
      {
        ...(id !== undefined && { id: `of ${id}` }),
        resource_type: 'flavor:instance',
        flavor_id: 'f1',
        amount: vcpus,
        allocations: [],
      },
    ],
    resource_requests: { VCPU: vcpus, MEMORY_MB: vcpus * 512 },
  };
}

describe.skipIf(program === undefined)('ExternalServiceFilter beside a real coral-credits', () => {
  let coral: RealCoralCredits | undefined;
  afterEach(() => coral?.stop());

  const start = async ({
    project = PROJECT,
    credits = CREDITS,
  }: {
    project?: string;
    credits?: Record<string, number>;
  } = {}) => {
    coral = await RealCoralCredits.startOrSkip(program ?? '', project, credits);
    return coral;
  };

  /** `commit`: of `[ledger]`, with commit endpoints; `undefined` = without them. */
  const enforcementAt = async ({ url, token }: RealCoralCredits, commit: 'check' | 'request' | undefined) => {
    const enforcement = await UsageEnforcement.load(
      {
        environment: {},
        configFiles: [],
        values: {
          enforcement: {
            enabled_filters: ['ExternalServiceFilter'],
            external_service_base_endpoint: `${url}/consumer`,
            external_service_bearer_token: token,
            external_service_timeout: 600,
            external_service_message_fields: ['message', 'error'],
            ...(commit !== undefined && {
              external_service_commit_create_endpoint: `${url}/consumer/create`,
              external_service_commit_update_endpoint: `${url}/consumer/update`,
            }),
          },
          ...(commit !== undefined && { ledger: { commit } }),
        },
      },
      { logger: recordingLogger() },
    );
    onTestFinished(() => enforcement.close());
    return enforcement;
  };

  it('charges what the filter has allowed, through creations, updates, refusals and ends', async () => {
    const real = await start();
    if (real === undefined) {
      return;
    }
    const enforcement = await enforcementAt(real, 'request');
    const chance = new Chance(SEED);
    const leases = new Map<string, Asked>();
    const outcomes = new Set<string>();
    const charged = () => [...leases.values()].reduce((sum, { vcpus, hours }) => sum + vcpus * hours, 0);
    for (let step = 0; step < 60; step += 1) {
      const [id, before] = [...leases][chance.below(leases.size * 2)] ?? [randomUUID(), undefined];
      const asked = {
        vcpus: before?.vcpus ?? 1 + chance.below(8),
        hours: 1 + chance.below(60),
        id,
        name: `run-${step}`,
      };
      if (before !== undefined && chance.below(5) === 0) {
        const report = await enforcement.onEnd({ context, lease: lease(before) });
        expect(report).toMatchObject({ failed: false });
        leases.delete(id);
        outcomes.add('end');
      } else {
        const { id: _, ...unnamed } = lease(asked);
        const current = before && lease(before);
        const check =
          current === undefined
            ? await enforcement.checkCreate({ context, lease: unnamed })
            : await enforcement.checkUpdate({ context, currentLease: current, lease: unnamed });
        expect((await real.truth()).left.VCPU).toBe(CREDITS.VCPU - charged());
        const more = asked.vcpus * asked.hours - (before === undefined ? 0 : before.vcpus * before.hours);
        expect(check.allowed, check.message ?? undefined).toBe(more <= CREDITS.VCPU - charged());
        outcomes.add(
          `${current === undefined ? 'create' : more < 0 ? 'shorten' : 'extend'} ${check.allowed}`,
        );
        const commit =
          current === undefined
            ? await enforcement.commitCreate({ context, lease: lease(asked) })
            : await enforcement.commitUpdate({ context, currentLease: current, lease: lease(asked) });
        expect(commit.allowed).toBe(check.allowed);
        if (commit.allowed) {
          leases.set(id, asked);
        } else {
          const free = CREDITS.VCPU - charged();
          expect(check.message).toContain(
            `Insufficient VCPU credits available. Requested:${more}, Available:${free} hours`,
          );
          expect(commit.message).toBe(check.message);
        }
      }
      const { left } = await real.truth();
      expect(left).toEqual({
        VCPU: CREDITS.VCPU - charged(),
        MEMORY_MB: CREDITS.MEMORY_MB - charged() * 512,
      });
    }
    expect([...outcomes].sort()).toEqual(
      ['create false', 'create true', 'end', 'extend false', 'extend true', 'shorten true'].sort(),
    );
  });

  it('charges nothing without commit endpoints, and knows no lease of updates and ends', async () => {
    const real = await start();
    if (real === undefined) {
      return;
    }
    const enforcement = await enforcementAt(real, undefined);
    const id = randomUUID();
    expect(await enforcement.checkCreate({ context, lease: lease({ vcpus: 4, hours: 10 }) })).toMatchObject({
      allowed: true,
    });
    const refused = await enforcement.checkCreate({ context, lease: lease({ vcpus: 4, hours: 251 }) });
    expect(refused.message).toContain('Insufficient VCPU credits available. Requested:1004, Available:1000');
    const known = lease({ vcpus: 4, hours: 10, id });
    const update = { context, currentLease: known, lease: lease({ vcpus: 4, hours: 9 }) };
    expect(await enforcement.checkUpdate(update)).toMatchObject({ allowed: false });
    expect(await enforcement.onEnd({ context, lease: known })).toMatchObject({ failed: true });
    expect(await real.truth()).toEqual({ left: CREDITS, consumers: [] });
  });

  it('charges a lease twice when checks commit as well, and once with [ledger] commit = request', async () => {
    const real = await start();
    if (real === undefined) {
      return;
    }
    const asked = { vcpus: 4, hours: 10 };
    for (const [commit, vcpus] of [
      ['request', 40],
      ['check', 80],
    ] as const) {
      const before = (await real.truth()).left.VCPU ?? 0;
      const enforcement = await enforcementAt(real, commit);
      const known = lease({ ...asked, id: randomUUID() });
      expect(await enforcement.checkCreate({ context, lease: lease(asked) })).toMatchObject({
        allowed: true,
      });
      expect(await enforcement.commitCreate({ context, lease: known })).toMatchObject({ allowed: true });
      expect(before - ((await real.truth()).left.VCPU ?? 0)).toBe(vcpus);
      await enforcement.onEnd({ context, lease: known });
      // It has made up an id for the lease that came without one: no end reaches that.
      expect(before - ((await real.truth()).left.VCPU ?? 0)).toBe(vcpus - 40);
    }
  });

  it('charges an hour more when a lease ends at its end date, once for an end that comes twice in that hour', async () => {
    const real = await start();
    if (real === undefined) {
      return;
    }
    const enforcement = await enforcementAt(real, 'request');
    const now = Date.now();
    const over = {
      ...lease({ vcpus: 1, hours: 1, id: randomUUID() }),
      start_date: date(now - 2 * HOUR),
      end_date: date(now),
    };
    expect(await enforcement.commitCreate({ context, lease: over })).toMatchObject({ allowed: true });
    expect((await real.truth()).left.VCPU).toBe(CREDITS.VCPU - 2);
    for (let times = 0; times < 2; times += 1) {
      expect(await enforcement.onEnd({ context, lease: over })).toMatchObject({ failed: false });
      expect((await real.truth()).left.VCPU).toBe(CREDITS.VCPU - 3);
    }
  });

  it('fails for a lease that takes nothing of a class which has credits', async () => {
    const real = await start();
    if (real === undefined) {
      return;
    }
    const enforcement = await enforcementAt(real, 'request');
    const { resource_requests: _, ...rest } = lease({ vcpus: 1, hours: 1 });
    const decision = await enforcement.checkCreate({
      context,
      lease: { ...rest, resource_requests: { VCPU: 1 } },
    });
    expect(decision).toMatchObject({ allowed: false, outcomes: [{ failed: true }] });
  });

  it('fails the checks of conformance that it does not pass, and no others', async () => {
    const real = await start({ project: PROJECT_ID });
    if (real === undefined) {
      return;
    }
    const at = (path: string) => new URL(`${real.url}/consumer/${path}`);
    const endpoints = {
      create: at('check-create'),
      update: at('check-update'),
      end: at('on-end'),
      commitCreate: at('create'),
      commitUpdate: at('update'),
    };
    const ours = { ...context, project_id: PROJECT_ID };
    const { results } = await runConformance({
      endpoints,
      credentials: { bearer: real.token },
      timeout: 600,
      allowLease: JSON.stringify({ context: ours, lease: lease({ vcpus: 1, hours: 1 }) }),
      denyLease: JSON.stringify({ context: ours, lease: lease({ vcpus: 8, hours: 500 }) }),
    });
    const found: Record<string, string> = {};
    for (const { check, result, reason, findings } of results) {
      const answers = findings.map(({ exchange: { answer } }) => `${answer?.status} ${answer?.body}`);
      const why = result === 'failed' ? told(answers) : reason;
      const what = [result, ...(why === null ? [] : [why])].join(': ');
      found[what] = [...(found[what]?.split(' ') ?? []), check.id].join(' ');
    }
    expect(found).toMatchInlineSnapshot(`
      {
        "failed: 204": "no-content",
        "failed: 400 affinity resource_properties resource_requests": "update-virtual-instance end-virtual-instance",
        "failed: 400 before_end_date affinity resource_properties resource_requests": "create-virtual-instance",
        "failed: 400 before_end_date resource_requests": "create-physical-host create-flavor-instance commit-create",
        "failed: 400 name end_date resource_requests, 400 end_date before_end_date resource_requests, 400 end_date before_end_date": "documented-example",
        "failed: 400 name resource_requests": "commit-update",
        "failed: 400 resource_requests": "update-physical-host update-flavor-instance end-physical-host end-flavor-instance",
        "failed: 403": "message-is-text",
        "failed: 500": "create-virtual-floatingip create-network update-virtual-floatingip update-network end-virtual-floatingip end-network empty-body not-an-object",
        "passed": "allow-lease deny-lease token-missing token-wrong token-right invalid-json no-redirect no-stack-trace no-token",
        "skipped: --deny-commit is not given": "deny-commit",
        "skipped: --deny-update is not given": "deny-update",
        "skipped: a lease whose dates have an offset is not understood either": "date-without-offset",
        "skipped: commit-create has failed, and this differs in one thing only": "commit-twice",
        "skipped: create-physical-host has failed, and this differs in one thing only": "create-two-reservations region-null date-with-fraction date-with-offset date-with-space unknown-fields idempotency-key large-lease concurrent connection-kept",
        "skipped: end-physical-host has failed, and this differs in one thing only": "end-unknown-lease end-twice",
        "skipped: no lease like that of --allow-lease is allowed any more": "limit",
        "skipped: update-physical-host has failed, and this differs in one thing only": "update-partial-lease update-partial-reservation",
      }
    `);
    expect(await real.truth()).toMatchObject({ consumers: [] });
  });
});

/** Which attributes it complains of, or only the status. */
function told(answers: readonly string[]): string {
  const known = answers.map((answer) => {
    const names = [...answer.matchAll(/"(\w+)":\["/g)].map(([, name]) => name);
    return [answer.slice(0, 3), ...new Set(names)].join(' ');
  });
  return [...new Set(known)].join(', ');
}

function date(at: number): string {
  return new Date(at).toISOString().slice(0, 19);
}
