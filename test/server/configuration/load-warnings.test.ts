/** Projects and users in the configuration that Keystone does not have. */
import { expect, it } from 'vitest';
import { IDS, recorded, recordedKeystone } from '../../support/recorded-identities.ts';
import { runServiceOnFile } from '../../support/running-service.ts';

it('are warned of at the start and after a reload, and those that it has are not', async () => {
  const keystone = await recordedKeystone();
  const ask = 'GET /v3/users?name=climat&domain_id=default';
  keystone.answer(ask, { status: 200, contentType: 'application/json', body: { users: [] } });
  keystone.answer('GET /v3/projects?name=climate&domain_id=default', recorded('projects-list-climate'));
  const account = Object.entries(keystone.options).map(([name, value]) => `${name} = ${value}`);
  const text = (projects: string, types: string) =>
    `[service]\nport = 0\n[enforcement]\nenabled_filters = MaxLeaseDurationFilter, MaxReservationSizeFilter\nmax_lease_duration_project_limits = ${projects}:60\nmax_reservation_size_project_limits = ${types}/physical:host:1\n[keystone]\n${account.join('\n')}\n`;
  const { logger, change } = await runServiceOnFile(text('climat@Default', 'climate@Default'));
  const said = () =>
    logger.lines.flatMap(({ fields, message }) => (message.startsWith('Keystone finds no') ? [fields] : []));
  const first = { option: '[enforcement] max_lease_duration_project_limits', name: 'climat@Default' };
  await expect.poll(said).toEqual([first]);
  expect(await change(text('climate@Default', 'climat@Default'))).toBe(true);
  const second = { option: '[enforcement] max_reservation_size_project_limits', name: 'climat@Default' };
  await expect.poll(said).toEqual([first, second]);
  expect(await change(text(IDS.climate, 'climate'))).toBe(true);
  await expect.poll(said).toEqual([first, second, { ...second, name: 'climate' }]);
});
