/** Fifty reloads under load: no request is lost, none is answered by two configurations. */
import { expect, it } from 'vitest';
import { startLoad } from '../../support/load.ts';
import { metric } from '../../support/metric.ts';
import { capturedText } from '../../support/requests.ts';
import { runServiceOnFile } from '../../support/running-service.ts';

const TWO_DAYS = capturedText('check-create-physical-host.json');
const limited = (seconds: number) =>
  `[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = ${seconds}\n[service]\nport = 0\n`;
const ONE_HOUR = limited(3600);
const THREE_DAYS = limited(259_200);

it('a reload fifty times under load loses no request, and each is answered by the rules of its generation', async () => {
  const { url, logger, request, service, change } = await runServiceOnFile(THREE_DAYS);
  const load = startLoad(`${url}/check-create`, 16, TWO_DAYS);
  for (let count = 1; count <= 50; count += 1) {
    await expect(change(count % 2 === 1 ? ONE_HOUR : THREE_DAYS)).resolves.toBe(true);
    await load.more(5);
  }
  await load.stop();

  expect(load.failures).toEqual([]);
  const tooLong =
    'The lease is 172800 seconds (2 days) long; the longest allowed for any lease is 3600 seconds (1 hour).';
  for (const { status, message, generation } of load.answers) {
    expect({ generation, status, message }).toEqual(
      generation % 2 === 1
        ? { generation, status: 204, message: undefined }
        : { generation, status: 403, message: tooLong },
    );
  }
  expect(new Set(load.answers.map(({ generation }) => generation)).size).toBeGreaterThan(45);
  const { text } = await request('/metrics');
  expect(metric(text, 'blazar_enforcement_generation')).toBe(51);
  expect(metric(text, 'blazar_enforcement_decisions_under_way')).toBe(0);
  expect(metric(text, 'blazar_enforcement_decisions_total', { operation: 'create' })).toBe(
    load.answers.length,
  );
  expect(logger.lines.filter(({ level }) => level === 'error')).toEqual([]);
  await service.close();
});
