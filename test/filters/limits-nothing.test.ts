/** An enabled filter that limits nothing must warn: users believe that the limit is enforced. */
import { expect, it } from 'vitest';
import { formatProblem } from '../../src/base/errors.ts';
import { readConfiguration } from '../../src/enforcement/configuration.ts';
import { SECTIONS } from '../../src/server/configuration/sections.ts';
import { confFile } from '../support/files.ts';
import { filterFolder, filterSource } from '../support/filter-folder.ts';

async function warningsOf(filter: string, ...lines: string[]) {
  const text = `[enforcement]\nenabled_filters = ${filter}\n${lines.join('\n')}\n`;
  const { problems } = await readConfiguration({ environment: {}, configFiles: [confFile(text)] }, SECTIONS);
  return problems.map(
    (problem) => `${problem.severity}: ${formatProblem(problem).replace(/^\/.*?:(?=\d)/, '')}`,
  );
}

const URL = 'http://127.0.0.1:1';

it.for<[filter: string, ...lines: string[]]>([
  ['MaxLeaseDurationFilter'],
  ['MaxLeaseDurationFilter', 'max_lease_duration = -1', 'max_lease_duration_project_limits = a:-1'],
  ['MaxLeaseDurationFilter', 'max_lease_duration_exempt_project_ids = a'],
  ['MaxReservationSizeFilter'],
  ['MaxReservationSizeFilter', 'max_reservation_size = physical:host:-1'],
  ['MaxLeasesFilter'],
  ['MaxLeasesFilter', 'max_leases_per_project_by_type = network:-1', 'max_leases_user_limits = a:-1'],
  ['LeaseDatesFilter'],
  ['UsageBudgetFilter', 'usage_budget_rates = physical:host:0'],
  ['UsageBudgetFilter', 'usage_budget_rates =', 'usage_budget_flavor_rates = m1:0'],
])('%s warns that it limits nothing if it is enabled without limits', async ([filter, ...lines]) => {
  expect(await warningsOf(filter, ...lines)).toEqual([
    expect.stringMatching(
      new RegExp(`^warning: 2: \\[enforcement\\] enabled_filters: ${filter} limits nothing: .*; set `),
    ),
  ]);
});

it.for<[filter: string, ...lines: string[]]>([
  ['MaxLeaseDurationFilter', 'max_lease_duration = 0'],
  ['MaxLeaseDurationFilter', 'max_lease_duration_user_limits = a:1'],
  ['MaxLeaseDurationFilter', 'max_lease_duration_extension_window = 0'],
  ['MaxReservationSizeFilter', 'max_reservation_size_project_limits = a/network:0'],
  ['MaxLeasesFilter', 'max_leases_project_limits = a:0'],
  ['MaxLeasesFilter', 'max_leases_per_user = 0'],
  ['LeaseDatesFilter', 'lease_dates_latest_end = +1'],
  ['UsageBudgetFilter'],
  ['UsageBudgetFilter', 'usage_budget_rates =', 'usage_budget_flavor_rates = m1:0.5'],
  ['ExternalServiceFilter', `external_service_base_endpoint = ${URL}`],
  [
    'ExternalServiceFilter',
    `external_service_check_create_endpoint = ${URL}`,
    `external_service_commit_update_endpoint = ${URL}`,
  ],
])('%s with one limit does not warn: %j', async ([filter, ...lines]) => {
  expect(await warningsOf(filter, ...lines)).toEqual([]);
});

it('ExternalServiceFilter warns if it calls no service because an endpoint is missing', async () => {
  expect(await warningsOf('ExternalServiceFilter', `external_service_on_end_endpoint = ${URL}`)).toEqual([
    expect.stringContaining('ExternalServiceFilter calls no service for create and update: set '),
  ]);
  expect(
    await warningsOf('ExternalServiceFilter', `external_service_check_create_endpoint = ${URL}`),
  ).toEqual([expect.stringContaining('ExternalServiceFilter calls no service for update: set ')]);
});

const AUDITED = 'audit_filters = ExternalServiceFilter';

it.for<[place: string, ...lines: string[]]>([
  ['4: [enforcement] external_service_timeout: ', 'external_service_timeout = 30'],
  ['5: [service] deadline: ', '[service]', 'deadline = 10'],
  ['5: [enforcement] external_service_timeout: ', AUDITED, 'external_service_timeout = 15'],
  ['6: [service] deadline: ', AUDITED, '[service]', 'deadline = 20'],
  ['', AUDITED, 'external_service_timeout = 14'],
  ['', 'external_service_timeout = 29'],
])(
  'ExternalServiceFilter warns at %s if the deadline, or half of it if it is audited, comes before its timeout',
  async ([place, ...lines]) => {
    const endpoint = `external_service_base_endpoint = ${URL}`;
    const warnings = await warningsOf('ExternalServiceFilter', endpoint, ...lines);
    expect(
      warnings.flatMap((line) => /^warning: (.*?: )external_service.* is not less/.exec(line)?.[1] ?? []),
    ).toEqual(place === '' ? [] : [place]);
  },
);

it("an operator's own filter can warn too, and one that throws is a mistake", async () => {
  const folder = filterFolder({
    'mine-filter.js': filterSource('MineFilter', {
      extra: "static limitsNothing = () => 'limits nothing: yet';",
    }),
    'torn-filter.js': filterSource('TornFilter', {
      extra: "static limitsNothing = () => { throw new Error('torn'); };",
    }),
  });
  expect(await warningsOf('MineFilter, TornFilter', `filters_path = ${folder}`)).toEqual([
    'warning: 2: [enforcement] enabled_filters: MineFilter limits nothing: yet',
    'error: 2: [enforcement] enabled_filters: TornFilter could not check its options: torn',
  ]);
});

it('an audited filter that limits nothing is reported at audit_filters', async () => {
  const lines = await warningsOf('', 'audit_filters = LeaseDatesFilter');
  expect(lines).toContainEqual(
    expect.stringMatching(/^warning: 3: \[enforcement\] audit_filters: LeaseDatesFilter limits nothing/),
  );
});
