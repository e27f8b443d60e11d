/** Blazar's own cases, asked of the library and of the policy service. */
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  ConfigurationError,
  type Context,
  type Decision,
  type EndReport,
  formatContext,
  formatLease,
  type Lease,
  UsageEnforcement,
} from '../../src/index.ts';
import { pageNamed, tableUnder } from '../docs/markdown.ts';
import { valuesOnly } from '../support/files.ts';
import { filterFolder, filterSource } from '../support/filter-folder.ts';
import { recordingLogger } from '../support/logger.ts';
import { policyServer } from '../support/policy-server.ts';
import { runServiceOn } from '../support/running-service.ts';
import { GENERIC, notes } from './chain.ts';
import {
  AUTH_URL,
  allocationsOf,
  CONFIGURED,
  DATES,
  DURATION,
  EXTERNAL,
  HOOKS,
  leaseUntil,
  type Outcome,
  OWNER,
  REGION,
  RESERVATIONS,
  type UpstreamCase,
  type Way,
} from './upstream-cases.ts';

type Enforcement = Readonly<Record<string, unknown>>;

interface Asked {
  readonly context: Context;
  /** The lease before an update. */
  readonly currentLease: Lease;
  readonly lease: Lease;
}

const PATHS = { create: '/check-create', update: '/check-update', end: '/on-end' } as const;

/** As Blazar builds it. */
function asked({ end = '02:23', currentEnd = '02:23' } = {}): Asked {
  const [before, after] = [currentEnd, end].map((time) => leaseUntil(`2014-01-01T${time}:00`));
  return {
    context: formatContext(leaseUntil(end), { authUrl: AUTH_URL, regionName: REGION }),
    currentLease: formatLease(before ?? {}, RESERVATIONS, allocationsOf('1')),
    lease: formatLease(after ?? {}, RESERVATIONS, allocationsOf('2')),
  };
}

/** The body of such a request. */
function bodyOf(operation: UpstreamCase['operation'], { context, currentLease, lease }: Asked): object {
  return operation === 'update' ? { context, current_lease: currentLease, lease } : { context, lease };
}

function outcomeOf(answer: Decision | EndReport): Outcome {
  return answer.failed ? 'failed' : answer.operation === 'end' || answer.allowed ? 'allowed' : 'denied';
}

type Ask = (operation: UpstreamCase['operation'], request: Asked) => Promise<Outcome>;

const LOAD: Record<Way, (enforcement: Enforcement, now?: string) => Promise<Ask>> = {
  async library(enforcement, now = '01:23') {
    const library = await UsageEnforcement.load(valuesOnly({ enforcement }), {
      logger: recordingLogger(),
      clock: { now: () => new Date(`2014-01-01T${now}:00Z`) },
    });
    onTestFinished(() => library.close());
    return async (operation, { context, currentLease, lease }) => {
      const calls = {
        create: () => library.checkCreate({ context, lease }),
        update: () => library.checkUpdate({ context, currentLease, lease }),
        end: () => library.onEnd({ context, lease }),
      };
      return outcomeOf(await calls[operation]());
    };
  },
  async service(enforcement) {
    const service = await runServiceOn({
      environment: {},
      configFiles: [],
      values: { enforcement, service: { port: 0 } },
    });
    return async (operation, request) => {
      const answer = await service.post(`/v1${PATHS[operation]}`, bodyOf(operation, request));
      if (answer.status === 204) {
        expect(answer.text).toBe('');
        return 'allowed';
      }
      const { status, json, text } = answer;
      expect({ status, json }).toEqual({ status: 403, json: { message: expect.stringMatching(/./) } });
      return text.includes(GENERIC) ? 'failed' : 'denied';
    };
  },
};

/** For titles with the whole name. */
function named<Case extends { readonly test: string }>(cases: readonly Case[]): (readonly [string, Case])[] {
  return cases.map((one) => [one.test, one]);
}

function expected({ outcome, differs }: UpstreamCase, way: Way): Outcome {
  return differs?.way === way ? differs.outcome : outcome;
}

describe.each(['library', 'service'] as const)('the %s does as Blazar in', (way) => {
  const load = LOAD[way];

  it.each(named(DURATION))('MaxLeaseDurationTestCase.%s', async (_, one) => {
    const enforcement = {
      enabled_filters: ['MaxLeaseDurationFilter'],
      max_lease_duration: 3600,
      max_lease_duration_exempt_project_ids: one.isExempt ? [OWNER.project_id] : [],
    };
    const ask = await load(enforcement, one.now);
    expect(await ask(one.operation, asked(one))).toBe(expected(one, way));
  });

  it.each(named(EXTERNAL))('ExternalServiceFilterTestCase.%s', async (_, one) => {
    const external = await policyServer(one.answer);
    const enforcement = {
      enabled_filters: ['ExternalServiceFilter'],
      external_service_base_endpoint: external.url,
    };
    const request = asked();
    expect(await (await load(enforcement))(one.operation, request)).toBe(expected(one, way));
    expect(
      external.requests.map(({ url, headers, body }) => [url, headers['content-type'], JSON.parse(body)]),
    ).toEqual([[PATHS[one.operation], 'application/json', bodyOf(one.operation, request)]]);
    expect(external.requests[0]?.headers).not.toHaveProperty('x-auth-token');
  });

  it.each(named(DATES))('ISODateTimeEncoderTestCase.%s', async (_, { date }) => {
    const external = await policyServer({ status: 204 });
    const enforcement = {
      enabled_filters: ['ExternalServiceFilter'],
      external_service_base_endpoint: external.url,
    };
    const request = asked();
    const lease = { ...request.lease, start_date: date };
    await (await load(enforcement))('end', { ...request, lease });
    expect(external.requests.map(({ body }) => JSON.parse(body).lease.start_date)).toEqual([date]);
  });

  it.each(named(CONFIGURED))('ConfiguringExternalServiceFilterTestCase.%s', async (_, one) => {
    const { option, url = 'http://localhost', isRefused } = one;
    const endpoint = option === undefined ? {} : { [`external_service_${option}_endpoint`]: url };
    const loading = load({ enabled_filters: ['ExternalServiceFilter'], ...endpoint });
    await (isRefused
      ? expect(loading).rejects.toThrow(ConfigurationError)
      : expect(loading).resolves.toBeDefined());
  });

  it.each(named(HOOKS))('EnforcementTestCase.%s', async (_, one) => {
    const calls = notes();
    const body = one.throws ? "throw new Error('broken');" : 'return allow();';
    const text = filterSource('FakeFilter', {
      create: `notes.push([context, lease]); ${body}`,
      update: `notes.push([context, currentLease, newLease]); ${body}`,
      end: 'notes.push([context, lease]);',
    });
    const enforcement = {
      enabled_filters: ['FakeFilter'],
      filters_path: [filterFolder({ 'fake-filter.js': text })],
    };
    const request = asked();
    expect(await (await load(enforcement))(one.operation, request)).toBe(expected(one, way));
    expect(calls).toEqual([Object.values(bodyOf(one.operation, request))]);
  });

  it('EnforcementTestCase.test_load_filters', async () => {
    const options = notes();
    const extra = `static options = z.object({
      fake_opt: z.int().default(1).meta({ description: 'An option.' }),
    });`;
    const end = 'notes.push(this.options);';
    const text = `import { z } from 'zod';\n${filterSource('FakeFilter', { extra, end })}`;
    const enforcement = {
      enabled_filters: ['FakeFilter'],
      filters_path: [filterFolder({ 'fake-filter.js': text })],
    };
    await (await load(enforcement))('end', asked());
    expect(options).toEqual([{ fake_opt: 1 }]);
  });
});

describe('a request has the form of Blazar in', () => {
  it('EnforcementTestCase.test_format_context', () => {
    expect(asked().context).toEqual({ ...OWNER, region_name: 'RegionOne', auth_url: 'https://fakeauth.com' });
  });

  it('EnforcementTestCase.test_format_lease', () => {
    const values = leaseUntil('2014-01-01T02:23:00');
    const [reservation] = RESERVATIONS;
    const allocations = allocationsOf('1');
    expect(formatLease(values, RESERVATIONS, allocations)).toEqual({
      ...values,
      reservations: [{ ...reservation, allocations: allocations['virtual:instance'] }],
    });
  });
});

it('docs/architecture.md names what differs', () => {
  const rows = tableUnder(pageNamed('docs/architecture.md'), 'Where we differ from upstream Blazar');
  const differing = [...DURATION, ...EXTERNAL, ...HOOKS].flatMap(({ differs }) => differs?.row ?? []);
  expect(rows.map(([upstream]) => upstream)).toEqual(
    expect.arrayContaining([...differing, 'the URL of Keystone is looked up in the catalog of the request']),
  );
});
