/** Services that speak the protocol, in full size: ours, and the one that third parties copy. */
import { describe, expect, it } from 'vitest';
import { CHECKS } from '../../src/conformance/checks.ts';
import { PROJECT_ID, USER_ID } from '../../src/conformance/leases.ts';
import { runConformance } from '../../src/conformance/run.ts';
import { start } from '../external-service-example/helpers.ts';
import { capturedText } from '../support/requests.ts';
import { runService } from '../support/running-service.ts';
import { daysLong, endpointsAt, idsOf, TOKEN } from './services.ts';

const ALL = CHECKS.map(({ id }) => id);
const author = {
  allowLease: capturedText('check-create-physical-host.json'),
  denyLease: capturedText('check-create-gpu-and-floating-ip.json'),
};

describe('our own service', () => {
  const service = { tokens: [TOKEN, 'another'] };

  it.for(['', '/v1'])('passes every check at "%s"', async (path) => {
    const { url, logger } = await runService({ service });
    const options = {
      endpoints: endpointsAt(url + path),
      credentials: { token: TOKEN },
      timeout: 10,
      ...author,
    };
    const report = await runConformance(options);
    expect(idsOf(report, 'passed')).toEqual(ALL);
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
    expect(idsOf(report, 'skipped')).toEqual(['token-missing', 'token-wrong', 'token-right']);
  });
});

describe('external-service-example', () => {
  it('passes every check, and has its whole budget again afterwards', async () => {
    const { url, post } = await start({ token: TOKEN, budgetNodeHours: 100 });
    const options = { endpoints: endpointsAt(url), credentials: { token: TOKEN }, timeout: 10 };
    const ofTenHosts = JSON.parse(daysLong(9));
    ofTenHosts.lease.reservations = [{ resource_type: 'physical:host', min: 10, max: 10 }];
    const report = await runConformance({
      ...options,
      allowLease: daysLong(1),
      denyLease: JSON.stringify(ofTenHosts),
    });
    expect(idsOf(report, 'passed')).toEqual(ALL);
    expect(report.notEnded).toBe(0);

    const whole = JSON.parse(daysLong(1));
    whole.context = { project_id: PROJECT_ID, user_id: USER_ID };
    whole.lease.reservations = [{ resource_type: 'physical:host', min: 5, max: 5 }];
    const dear = await post('/check-create', whole, { 'X-Auth-Token': TOKEN });
    expect(dear.text).toContain('has 100 of 100 left');
  });
});
