import { describe, expect, it } from 'vitest';
import {
  countedAt,
  isCounted,
  NOT_COUNTED,
  writtenAfter,
} from '../../src/skypilot/charging/counted-clusters.ts';
import { ALLOWED, rejectedWith } from '../support/decisions.ts';
import { type LabSetup, openLab } from './charging.ts';

const EIGHT = { gpu_quota_per_user: { A100: 8 } };
const REFUSED = { allowed: false, failed: false, policy: 'GpuQuotaPolicy', message: NOT_COUNTED };

const quotas = (setup: LabSetup = {}) =>
  openLab({ policies: ['GpuQuotaPolicy'], options: EIGHT, isCounted: false, ...setup });

describe('a quota whose clusters nobody has counted yet', () => {
  it('lets nothing start that it limits, until a complete round', async () => {
    const lab = await quotas();
    lab.api.launch({ name: 'before', workspace: 'ml', accelerators: { A100: 8 } });
    expect(await lab.ask()).toMatchObject(REFUSED);
    expect(await lab.ask({ name: 'validate' })).toMatchObject(REFUSED);
    expect(await lab.ask({ gpus: 'T4:1' })).toMatchObject(ALLOWED);
    expect(await lab.ask({ cluster: 'cpus', task: 'resources: {cpus: 2}\n' })).toMatchObject(ALLOWED);
    await lab.poll();
    expect(await lab.ask()).toMatchObject(rejectedWith(expect.stringContaining('has 8')));
    lab.api.stop('before');
    await lab.poll();
    expect(await lab.ask()).toMatchObject(ALLOWED);
    await lab.verify();
  });

  it('goes on to refuse after a round that failed, or could not read all', async () => {
    const lab = await quotas();
    lab.api.disturb = (response, path) => {
      if (path.startsWith('/cost_report')) {
        response.writeHead(503).end();
        return true;
      }
      return false;
    };
    await expect(lab.poll()).rejects.toThrow();
    expect(await lab.ask()).toMatchObject(REFUSED);
    lab.api.disturb = undefined;
    lab.api.launch({ name: '', workspace: 'ml' });
    expect((await lab.poll()).round).toMatchObject({ doubts: [expect.stringContaining('cannot be read')] });
    expect(await lab.ask()).toMatchObject(REFUSED);
    lab.api.forget();
    await lab.poll();
    expect(await lab.ask()).toMatchObject(ALLOWED);
  });

  it('is content with the round of another service', async () => {
    const one = await quotas();
    const other = await quotas({ connection: one.connection });
    await other.poll();
    expect(await one.ask()).toMatchObject(ALLOWED);
  });

  it('is not enforced, and refuses none, while it is only tried', async () => {
    const lab = await quotas({ options: { ...EIGHT, audit_policies: ['GpuQuotaPolicy'] } });
    expect(await lab.ask()).toMatchObject({
      allowed: true,
      warnings: [expect.stringContaining('have not been counted yet')],
    });
  });
});

describe('a quota whose clusters were counted', () => {
  it('believes it for half of its hold without another round', async () => {
    const lab = await quotas();
    await lab.poll();
    lab.pass(43_200);
    expect(await lab.ask({ cluster: 'one' })).toMatchObject(ALLOWED);
    lab.pass(1);
    expect(await lab.ask({ cluster: 'two' })).toMatchObject(REFUSED);
    // What counts already takes nothing more.
    expect(await lab.ask({ cluster: 'one' })).toMatchObject(ALLOWED);
    await lab.poll();
    expect(await lab.ask({ cluster: 'two' })).toMatchObject(ALLOWED);
  });

  it('does not, when rounds went on while it was disabled', async () => {
    const lab = await quotas();
    await lab.poll();
    const without = await openLab({ connection: lab.connection, options: { api_server: lab.api.url } });
    lab.pass(600);
    without.pass(600);
    lab.api.launch({ name: 'meanwhile', workspace: 'ml', accelerators: { A100: 8 } });
    await without.poll();
    expect(await lab.ask()).toMatchObject(REFUSED);
    await lab.poll();
    expect(await lab.ask()).toMatchObject({ message: expect.stringContaining('has 8') });
  });
});

describe('the mark of a round', () => {
  const limit = { scheme: 'skypilot-gpus', believed: 600 } as Parameters<typeof isCounted>[0];
  const at = 1_000_000_000_000n;

  it.each([null, '{', '[]', '{"skypilot-gpus": "soon"}'])('is none in %s', (written) => {
    expect(isCounted(limit, countedAt(written), at, 60)).toBe(false);
  });

  it('is not believed from a future that a clock has left', () => {
    const marks = countedAt(writtenAfter(new Map(), [limit], at + 601_000_000n, true));
    expect(isCounted(limit, marks, at, 60)).toBe(false);
    expect(isCounted(limit, marks, at + 2_000_000n, 60)).toBe(true);
  });
});
