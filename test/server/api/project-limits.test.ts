/** Which limits a project is told of, and what of them members see. */
import { expect, it } from 'vitest';
import { requireConfiguration } from '../../../src/enforcement/configuration.ts';
import { isExempt, projectLimits } from '../../../src/server/api/project-limits.ts';
import { SECTIONS } from '../../../src/server/configuration/sections.ts';
import { confFile } from '../../support/files.ts';

const SECRET = 's3cret-of-the-service';

const TEXT = `[enforcement]
enabled_filters = MaxLeaseDurationFilter, MaxLeasesFilter, ExternalServiceFilter, UsageBudgetFilter
audit_filters = MaxReservationSizeFilter
exempt_projects = free, gift@Default
max_lease_duration = 86400
max_lease_duration_exempt_project_ids = climate, ocean
max_leases_per_project = 5
max_leases_project_limits = ocean:1, climate@Default:7, climate/physical:host:3, a/climate/physical:host:2
max_leases_tag_limits = big:9, small:1
max_leases_user_limits = alice:2, bob:3
max_reservation_size = physical:host:4
external_service_base_endpoint = https://quota.example.org/
external_service_token = ${SECRET}
usage_budget_flavor_rates = large:2
[ledger]
connection = sqlite:///tmp/none.db
[keystone]
auth_url = http://127.0.0.1:9/v3
username = blazar
password = ${SECRET}
project_name = service
resolve_names = true
`;

const NAMES = {
  project: { name: 'climate', domain: 'Default', tags: ['big'] },
  user: undefined,
};

async function read() {
  const file = confFile(TEXT);
  return {
    file,
    configuration: await requireConfiguration({ environment: {}, configFiles: [file] }, SECTIONS),
  };
}

async function limits(isMember: boolean) {
  const viewer = { isMember, userId: isMember ? 'alice' : null };
  const { file, configuration } = await read();
  return { file, all: projectLimits(configuration, 'climate', NAMES, viewer) };
}

function valuesOf(all: Awaited<ReturnType<typeof limits>>['all']): Record<string, unknown> {
  return Object.fromEntries(
    all.flatMap(({ options }) =>
      options.filter((one) => !one.default).map(({ option, value }) => [option, value]),
    ),
  );
}

const FOR_EVERYBODY = {
  max_lease_duration: 86_400,
  max_lease_duration_exempt_project_ids: ['climate'],
  max_leases_per_project: 5,
  max_leases_project_limits: { 'climate@Default': 7, 'climate/physical:host': 3 },
  max_leases_tag_limits: { big: 9 },
  usage_budget_flavor_rates: { large: 2 },
};

it('are those of the enabled filters that concern the project, with their places and without secrets', async () => {
  const { file, all } = await limits(false);
  expect(all.map(({ filter, audit }) => [filter, audit])).toEqual([
    ['MaxLeaseDurationFilter', false],
    ['MaxLeasesFilter', false],
    ['ExternalServiceFilter', false],
    ['UsageBudgetFilter', false],
    ['MaxReservationSizeFilter', true],
  ]);
  expect(valuesOf(all)).toEqual({
    ...FOR_EVERYBODY,
    max_reservation_size: { 'physical:host': 4 },
    max_leases_user_limits: { alice: 2, bob: 3 },
    external_service_base_endpoint: 'https://quota.example.org/',
    external_service_token: '****',
  });
  const [duration] = all.flatMap(({ options }) => options);
  expect(duration).toMatchObject({ option: 'max_lease_duration', unit: 'seconds', origin: `${file}:5` });
});

it('tell members nothing of other projects and users, of addresses, secrets or files, or of filters that are tried', async () => {
  const { file, all } = await limits(true);
  expect(valuesOf(all)).toEqual({
    ...FOR_EVERYBODY,
    max_leases_user_limits: { alice: 2 },
    external_service_base_endpoint: null,
    external_service_token: null,
  });
  expect(all.flatMap(({ options }) => options).filter(({ origin }) => origin !== null)).toEqual([]);
  const text = JSON.stringify(all);
  expect([SECRET, file, 'quota.example.org', 'ocean', 'bob'].filter((one) => text.includes(one))).toEqual([]);
});

it('do not apply to a project that is exempt, by id or by name', async () => {
  const { configuration } = await read();
  const named = (name: string, domain: string) => ({ project: { name, domain, tags: [] }, user: undefined });
  expect(isExempt(configuration, 'free', undefined)).toBe(true);
  expect(isExempt(configuration, 'x', named('gift', 'Default'))).toBe(true);
  expect(isExempt(configuration, 'x', named('gift', 'other'))).toBe(false);
});
