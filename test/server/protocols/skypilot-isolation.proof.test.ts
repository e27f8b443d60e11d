/** A policy that hangs or breaks, through the authenticator that SkyPilot uses. */
import { expect, it } from 'vitest';
import { metric } from '../../support/metric.ts';
import { FAILED } from '../../support/skypilot.ts';
import { runSkypilot } from '../../support/skypilot-service.ts';

it('a policy that hangs or has an unhandled rejection is named, and the service keeps responding', async () => {
  const { ask, request, logger } = await runSkypilot(
    {
      OddPolicy: `if (task.run === 'hang') { for (;;); }
        if (task.run === 'stray') { void (async () => { throw new Error('stray'); })(); }`,
      LabelPolicy: "task.labels = { a: 'b' };",
    },
    { skypilot: { isolation: 'worker', deadline: 1 } },
  );
  for (const run of ['hang', 'stray']) {
    const refused = ask({ task: `run: ${run}\n` });
    const alive = await request('/healthz');
    expect(alive.status).toBe(200);
    expect(await refused).toMatchObject({ status: 500, json: { message: FAILED } });
    expect(logger.lines.find(({ level }) => level === 'error')).toMatchObject({
      fields: { policy: 'OddPolicy', error: expect.stringMatching(/no answer within 1 s|stray/) },
      message: 'policy failed',
    });
    await expect.poll(async () => (await ask()).status).toBe(200);
  }
  const { text } = await request('/metrics');
  const failed = metric(text, 'blazar_enforcement_decisions_total', { outcome: 'failed' });
  expect(failed).toBeGreaterThanOrEqual(2);
});
