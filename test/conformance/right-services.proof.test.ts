/** Services that speak the protocol, in full size: ours, and the one that third parties copy. */
import { describe, expect, it } from 'vitest';
import { PROJECT_ID, USER_ID } from '../../src/conformance/leases.ts';
import { CHECKS, runConformance } from '../../src/conformance/run.ts';
import { start } from '../external-service-example/helpers.ts';
import { newLedger } from '../support/ledgers.ts';
import { capturedText } from '../support/requests.ts';
import { runService, runServiceOf } from '../support/running-service.ts';
import {
  allEndpointsAt,
  daysLong,
  endpointsAt,
  idsOf,
  runAgainst,
  smallService,
  TOKEN,
  toBeDaysLong,
} from './services.ts';
import { WRONG_SERVICES } from './wrong-services.ts';

const ALL = CHECKS.map(({ id }) => id);
const author = {
  allowLease: capturedText('check-create-physical-host.json'),
  denyLease: capturedText('check-create-gpu-and-floating-ip.json'),
  denyUpdate: toBeDaysLong(9),
};

describe('our own service', () => {
  const service = { tokens: [TOKEN, 'another-right-token'] };

  it.for(['', '/v1'])('passes every check that concerns it at "%s"', async (path) => {
    const { url, logger } = await runService({ service });
    const options = {
      endpoints: allEndpointsAt(url + path),
      credentials: { token: TOKEN },
      timeout: 10,
      ...author,
    };
    const report = await runConformance(options);
    expect(idsOf(report, 'failed')).toEqual([]);
    // A commit asks the ledger only, and there is none.
    expect(idsOf(report, 'skipped')).toEqual(['deny-commit', 'limit']);
    expect(report.notEnded).toBe(0);
    expect(logger.lines.filter(({ level }) => level === 'error')).toEqual([]);
  });

  it('passes without a token too, when it asks for none', async () => {
    const { url } = await runService({ service: { ...service, tokens: undefined } });
    const report = await runConformance({
      endpoints: endpointsAt(url),
      credentials: {},
      timeout: 10,
      ...author,
    });
    expect(idsOf(report, 'failed')).toEqual([]);
    const without = ALL.filter((id) => /^(token|commit)-|deny-commit|limit|no-token/.test(id));
    expect(idsOf(report, 'skipped')).toEqual(without);
  });
});

it('our own service with a ledger passes every check, whose commits it judges', async () => {
  const { url } = await runServiceOf({
    service: { tokens: [TOKEN] },
    enforcement: {
      enabled_filters: ['MaxLeaseDurationFilter', 'MaxLeasesFilter'],
      max_lease_duration: 172_800,
      max_leases_per_project: 3,
      max_leases_project_limits: { closed: 0 },
    },
    ledger: { connection: await newLedger(), commit: 'request' },
  });
  const denied = JSON.parse(daysLong(1));
  denied.context.project_id = 'closed';
  const report = await runConformance({
    endpoints: allEndpointsAt(url),
    credentials: { token: TOKEN },
    timeout: 10,
    ...author,
    denyCommit: JSON.stringify(denied),
  });
  expect(idsOf(report, 'passed')).toEqual(ALL);
});

it('external-service-example passes every check that it has an endpoint for, and has its whole budget again afterwards', async () => {
  const now = () => Date.parse('2026-11-20T00:00:00Z');
  const { url, post } = await start({ token: TOKEN, budgetNodeHours: 100, now });
  const options = { endpoints: endpointsAt(url), credentials: { token: TOKEN }, timeout: 10 };
  const ofTenHosts = JSON.parse(daysLong(9));
  const reservations = [{ resource_type: 'physical:host', min: 10, max: 10 }];
  ofTenHosts.lease.reservations = reservations;
  const ofOneHost = JSON.parse(daysLong(1));
  ofOneHost.lease.reservations = [{ resource_type: 'physical:host', min: 1, max: 1 }];
  const toBeLong = JSON.parse(toBeDaysLong(9));
  toBeLong.current_lease.reservations = reservations;
  toBeLong.lease.reservations = reservations;
  const report = await runConformance({
    ...options,
    allowLease: JSON.stringify(ofOneHost),
    denyLease: JSON.stringify(ofTenHosts),
    denyUpdate: JSON.stringify(toBeLong),
  });
  expect(idsOf(report, 'failed')).toEqual([]);
  // It has no commit endpoints.
  expect(idsOf(report, 'skipped')).toEqual(ALL.filter((id) => /commit/.test(id)));
  expect(report.notEnded).toBe(0);

  const whole = JSON.parse(daysLong(1));
  whole.context = { project_id: PROJECT_ID, user_id: USER_ID };
  whole.lease.reservations = [{ resource_type: 'physical:host', min: 5, max: 5 }];
  const dear = await post('/check-create', whole, { 'X-Auth-Token': TOKEN });
  expect(dear.text).toContain('has 100 of 100 left');
});

it('there is exactly one wrong service for each check', () => {
  expect(Object.keys(WRONG_SERVICES)).toEqual(CHECKS.map(({ id }) => id));
});

it('the service that they are made from passes every check', async () => {
  const { url } = await smallService();
  const report = await runAgainst(url);
  expect(idsOf(report, 'passed')).toEqual(CHECKS.map(({ id }) => id));
});

describe('the check', () => {
  for (const [id, { mistake, fault, alsoFails = [] }] of Object.entries(WRONG_SERVICES)) {
    it(`${id} fails a service that ${mistake}`, async () => {
      const { url } = await smallService(fault());
      // Its requests are plain ones, and nearly half of all: they are sent where they matter.
      const checks = CHECKS.filter((check) => check.id === id || check.id !== 'concurrent');
      const failed = idsOf(await runAgainst(url, { checks }), 'failed');
      if (alsoFails === 'many') {
        expect(failed).toContain(id);
      } else {
        expect(failed.sort()).toEqual([id, ...alsoFails].sort());
      }
    });
  }
});
