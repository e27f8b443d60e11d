import { expect, it } from 'vitest';
import { rowsOf, visitService } from './visitor.ts';

it('the configuration shows every option with its value and where it comes from, and hides secrets', async () => {
  const { get, file } = await visitService(
    '[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = 3600\nexternal_service_token = s3cret\nexternal_service_base_endpoint = https://policy.example.org\nexempt_projects = $external_service_token\n',
  );
  const { html } = await get('/configuration');
  const set = rowsOf(html, 'Set in [enforcement]');
  const defaults = rowsOf(html, 'Defaults of [enforcement]');
  expect(set).toEqual(
    [
      ['enabled_filters', 'MaxLeaseDurationFilter', `${file}:2`],
      // A value that is put together from a secret is one, wherever it is shown.
      ['exempt_projects', '****', `${file}:6`],
      ['max_lease_duration', '3600 seconds', `${file}:3`],
      ['external_service_base_endpoint', 'https://policy.example.org', `${file}:5`],
      ['external_service_token', '****', `${file}:4`],
    ].sort((a, b) => set.findIndex(([name]) => name === a[0]) - set.findIndex(([name]) => name === b[0])),
  );
  expect(defaults).toContainEqual(['external_service_timeout', '10 seconds', 'default']);
  expect(defaults).toContainEqual(['audit_filters', 'empty', 'default']);
  expect(rowsOf(html, 'Defaults of [service]')).toContainEqual(['tls_cert_file', 'not set', 'default']);
  expect(rowsOf(html, 'Set in [ledger]')).toEqual([]);
  for (const path of ['/', '/configuration']) {
    expect((await get(path)).html).not.toContain('s3cret');
  }
});
