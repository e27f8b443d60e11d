/** The checks of the conformance run, against real HTTP services. */
import { describe, expect, it } from 'vitest';
import { SOURCE } from '../../src/conformance/check.ts';
import { CHECKS } from '../../src/conformance/run.ts';
import { anchors, pageNamed } from '../docs/markdown.ts';
import { startUnresponsiveService } from '../support/services.ts';
import {
  daysLong,
  endpointsAt,
  type Fault,
  idsOf,
  isReal,
  runAgainst,
  smallService,
  TOKEN,
} from './services.ts';

const LOOKING_BACK = ['message-is-text', 'no-redirect', 'no-content', 'no-stack-trace', 'no-token'];

describe('the checks', () => {
  it('have an id of their own each, and say what they prove and by which word of the protocol', () => {
    expect(new Set(CHECKS.map(({ id }) => id)).size).toBe(CHECKS.length);
    for (const { id, title, protocol, sources } of CHECKS) {
      expect(id).toMatch(/^[a-z]+(-[a-z]+)*$/);
      expect(title).not.toBe('');
      expect(protocol).toMatch(/\.$/);
      expect(sources).not.toEqual([]);
    }
  });

  it('name places that exist', () => {
    const pages = Object.values(SOURCE).filter((source) => source.startsWith('docs/'));
    expect(pages).not.toEqual([]);
    for (const source of pages) {
      const [page = '', anchor] = source.split('#');
      expect(anchors(pageNamed(page)), source).toContain(anchor);
    }
  });
});

describe('a run', () => {
  it('counts its requests, and keeps what each check sent', async () => {
    const { url, asked } = await smallService();
    const { results, requests } = await runAgainst(url);
    expect(requests).toBe(asked.length);
    for (const { check, exchanges } of results) {
      expect(exchanges.length, check.id)[LOOKING_BACK.includes(check.id) ? 'toBe' : 'toBeGreaterThan'](0);
    }
  });

  it('tells the end of every lease that was allowed', async () => {
    const { url, asked } = await smallService();
    const { notEnded } = await runAgainst(url, { allowLease: undefined, denyLease: daysLong(1) });
    expect(notEnded).toBe(0);
    const real = asked.filter(isReal);
    const starts = (operation: string) =>
      real
        .filter((one) => one.operation === operation)
        .filter(({ json }) => !String(json.lease.name).startsWith('of 9 days'))
        .map(({ json }) => `${json.lease.name} ${json.lease.start_date}`);
    const ends = starts('end');
    expect(starts('create').filter((lease) => !ends.includes(lease))).toEqual([]);
  });

  it('says how many leases could not be told', async () => {
    const { url, asked } = await smallService((one) =>
      one.operation === 'end' ? { status: 500 } : undefined,
    );
    const { notEnded } = await runAgainst(url);
    expect(notEnded).toBeGreaterThan(50);
    const told = asked
      .filter(isReal)
      .filter(({ operation }) => operation === 'end')
      .map(({ json }) => json.lease.id);
    const often = told.filter((id) => told.filter((other) => other === id).length > 3);
    expect(often).toEqual([]);
  });

  it('skips what needs an endpoint that there is not', async () => {
    const { url } = await smallService();
    const { create, end } = endpointsAt(url);
    const onlyCreate = await runAgainst(url, { endpoints: { create } });
    expect(idsOf(onlyCreate, 'failed')).toEqual([]);
    expect(idsOf(onlyCreate, 'skipped')).toEqual(
      CHECKS.filter(({ id }) => /^(update|end|commit)-|deny-(update|commit)|limit/.test(id)).map(
        ({ id }) => id,
      ),
    );
    expect(onlyCreate.results.find(({ check }) => check.id === 'end-twice')?.reason).toBe(
      'there is no endpoint: neither URL nor --end-endpoint is given',
    );
    expect(onlyCreate.notEnded).toBeGreaterThan(0);

    const onlyEnd = await runAgainst(url, { endpoints: { end } });
    expect(idsOf(onlyEnd, 'failed')).toEqual([]);
    expect(idsOf(onlyEnd, 'passed')).toEqual(
      CHECKS.filter(({ id }) => /^(end-|token-|invalid-json|empty-body|not-an-object|no-)/.test(id)).map(
        ({ id }) => id,
      ),
    );
  });
});

it('a service that is not there neither accepts nor refuses: ends the run when the timeout is over', async () => {
  const { port } = await startUnresponsiveService();
  const run = runAgainst(`http://127.0.0.1:${port}`, { timeout: 0.3 });
  await expect(run).rejects.toThrow(/^POST .*: no connection within 0.3 s$/);
});

describe('a service that falls silent', () => {
  it('is asked once more, and then left alone', async () => {
    const { url, asked } = await smallService(() => 'silence');
    const report = await runAgainst(url, { timeout: 3 });
    expect(idsOf(report, 'failed')).toEqual(['allow-lease']);
    expect(asked).toHaveLength(2);
    expect(report.results[1]).toMatchObject({
      result: 'skipped',
      reason: 'the service has not answered since the check allow-lease',
    });
  });

  it('fails the check that brought it down, and the answers before are still looked at', async () => {
    let stop = async () => {};
    const crashes: Fault = ({ text, token }) => {
      if (text === '') {
        void stop();
        return 'hangUp';
      }
      return token === TOKEN ? undefined : { status: 401, body: 'Traceback (most recent call last):' };
    };
    const service = await smallService(crashes);
    stop = service.stop;
    const report = await runAgainst(service.url);
    expect(idsOf(report, 'failed')).toEqual(['empty-body', 'no-stack-trace']);
    expect(idsOf(report, 'skipped')).toEqual([
      'not-an-object',
      'large-lease',
      'concurrent',
      'connection-kept',
    ]);
    expect(report.results.find(({ check }) => check.id === 'concurrent')?.reason).toBe(
      'the service has not answered since the check empty-body',
    );
  });

  it('for one request is asked all the others', async () => {
    const { url } = await smallService(({ json }) =>
      json?.context?.region_name === null ? 'hangUp' : undefined,
    );
    const report = await runAgainst(url);
    expect(idsOf(report, 'failed')).toEqual(['region-null']);
    expect(idsOf(report, 'skipped')).toEqual([]);
  });
});
