import { describe, expect, it } from 'vitest';
import { MaxLeaseDurationFilter } from '../../filters/max-lease-duration-filter.ts';
import { ConfigurationError } from '../../src/base/errors.ts';
import { requireConfiguration, sectionOf } from '../../src/enforcement/configuration.ts';
import { serviceOptions, serviceSection } from '../../src/server/configuration/options.ts';
import { configFile, configuration, problemsOf, service, shown } from '../config/helpers.ts';
import { filterFolder, filterSource } from '../support/filter-folder.ts';

const enabled = 'enabled_filters = MaxLeaseDurationFilter';

describe('a valid configuration', () => {
  it('has no problems, and has the filters in the configured order with their checked options', async () => {
    const {
      problems: found,
      filters,
      exemptProjects,
    } = await configuration(
      `[enforcement]
enabled_filters = ExternalServiceFilter, MaxLeaseDurationFilter
exempt_projects = ops, admin
max_lease_duration = 86_400
max_lease_duration_project_limits = climate:-1, constructor:60
external_service_base_endpoint: http://127.0.0.1:8643/v1
`,
    );
    expect(found).toEqual([]);
    expect(exemptProjects).toEqual(['ops', 'admin']);
    expect(filters.map(({ installed, audit }) => [installed.name, audit])).toEqual([
      ['ExternalServiceFilter', false],
      ['MaxLeaseDurationFilter', false],
    ]);
    expect(filters[1]?.installed.filterClass).toBe(MaxLeaseDurationFilter);
    expect(filters[1]?.options).toEqual({
      max_lease_duration: 86_400,
      max_lease_duration_exempt_project_ids: [],
      max_lease_duration_project_limits: { climate: -1, constructor: 60 },
      max_lease_duration_tag_limits: {},
      max_lease_duration_user_limits: {},
    });
    expect(filters[0]?.options).toMatchObject({
      external_service_base_endpoint: 'http://127.0.0.1:8643/v1',
      external_service_timeout: 10,
    });
  });

  it('runs audited filters in their place among the enabled ones, or else after them', async () => {
    const order = async (...lines: readonly string[]) => {
      const endpoint = 'external_service_base_endpoint = http://h';
      const { filters } = await configuration(['[enforcement]', endpoint, ...lines].join('\n'));
      return filters.map(({ installed, audit }) => [installed.name, audit]);
    };
    expect(
      await order(
        'enabled_filters = MaxLeaseDurationFilter, ExternalServiceFilter',
        'audit_filters = ExternalServiceFilter',
      ),
    ).toEqual([
      ['MaxLeaseDurationFilter', false],
      ['ExternalServiceFilter', true],
    ]);
    expect(await order(enabled, 'audit_filters = ExternalServiceFilter')).toEqual([
      ['MaxLeaseDurationFilter', false],
      ['ExternalServiceFilter', true],
    ]);
  });

  it('constructs no filter', async () => {
    const folder = filterFolder({
      'never-filter.js': filterSource('NeverFilter', {
        extra: "constructor() { throw new Error('constructed'); }",
      }),
    });
    const { problems: found, filters } = await configuration(
      `[enforcement]\nenabled_filters = NeverFilter\nfilters_path = ${folder}\n`,
    );
    expect(found).toEqual([]);
    expect(filters.map(({ installed }) => installed.name)).toEqual(['NeverFilter']);
  });

  it('may be shared with Blazar, whose sections and options are ignored', async () => {
    const { problems: found } = await configuration(
      `[DEFAULT]
debug = true
transport_url = rabbit://openstack:hush@controller
[physical:host]
on_end = on_end
[keystone_authtoken]
password = pa$$word$
[enforcement]
${enabled}
max_lease_duration = 60
`,
    );
    expect(found).toEqual([]);
  });

  it('returns the values of an additional section', async () => {
    const right = await configuration(
      `[enforcement]\n${enabled}\nmax_lease_duration = 60\n[Service]\nport = +80\ntokens = a-0123456789abcdef, b-0123456789abcdef\n`,
    );
    expect(right.problems).toEqual([]);
    expect(sectionOf(right, serviceSection)).toEqual({
      ...serviceOptions.parse({}),
      port: 80,
      tokens: ['a-0123456789abcdef', 'b-0123456789abcdef'],
    });
  });
});

describe('a mistake seen at real sites', () => {
  it('is refused with the right names', async () => {
    expect(
      await problemsOf('enabled_filters = MaxReservationLengthFilter', 'max_reservation_length = 86400'),
    ).toEqual([
      'error: blazar.conf:2: [enforcement] enabled_filters: there is no filter "MaxReservationLengthFilter"; the nearest right name is "MaxLeaseDurationFilter"; installed: ExternalServiceFilter, LeaseDatesFilter, MaxLeaseDurationFilter, MaxLeasesFilter, MaxReservationSizeFilter, RulesFilter, SchedulingPolicyFilter, UsageBudgetFilter',
      'error: blazar.conf:3: [enforcement] max_reservation_length: unknown option; the nearest right name is "max_lease_duration"',
    ]);
  });
});

describe('all mistakes', () => {
  const first = `[DEFAULT]
max_lease_duration = 1
[enforcement]
enabled_filters = MaxLeaseDurationFilter, MaxLeaseDurFilter, MaxLeaseDurationFilter
max_lease_duration = one day
max_lease_duraton = 5
not an assignment
`;
  const second = '[service]\nport = 70000\nhost = h\n[enforcment]\na = 1\n';
  const sources = () => ({
    configFiles: [configFile(first, 'first.conf'), configFile(second, 'second.conf'), '/nope/third.conf'],
    environment: { OS_ENFORCEMENT__MAX_LEASE_DURATION_EXTENSION_WINDOW: '-3', OS_ENFORCEMENT__TYPO: '' },
    config: ['enforcement.external_service_timeout=0', 'nonsense'],
    values: { enforcement: { exempt_projects: 'a', external_service_allow_on_error: 'perhaps' } },
  });
  const errors = [
    'first.conf:4: [enforcement] enabled_filters: there is no filter "MaxLeaseDurFilter"; the nearest right name is "MaxLeasesFilter"; installed: ExternalServiceFilter, LeaseDatesFilter, MaxLeaseDurationFilter, MaxLeasesFilter, MaxReservationSizeFilter, RulesFilter, SchedulingPolicyFilter, UsageBudgetFilter',
    'first.conf:4: [enforcement] enabled_filters: MaxLeaseDurationFilter is named twice',
    'first.conf:5: [enforcement] max_lease_duration: expected a whole number of seconds or -1, got "one day"',
    'first.conf:6: [enforcement] max_lease_duraton: unknown option; the nearest right name is "max_lease_duration"',
    'first.conf:7: expected "name = value", got a line without "=" or ":"',
    'second.conf:2: [service] port: expected a whole number from 0 to 65535, got "70000"',
    'second.conf:5: [enforcment] unknown section; the nearest right name is [enforcement]',
    '--config: expected key=value or a file that exists, got "nonsense"',
    '/nope/third.conf: could not be read: there is no such file',
    '--config enforcement.external_service_timeout: [enforcement] external_service_timeout: expected a whole number of seconds from 1 to 3600, got "0"',
    'in code: [enforcement] external_service_allow_on_error: expected true or false, got "perhaps"',
    'OS_ENFORCEMENT__MAX_LEASE_DURATION_EXTENSION_WINDOW: [enforcement] max_lease_duration_extension_window: expected a whole number of seconds, 0 or more, got "-3"',
    'OS_ENFORCEMENT__TYPO: [enforcement] typo: unknown option',
  ];

  it('are reported together, each with its place', async () => {
    const { problems: found } = await configuration('', sources());
    expect(shown(found, 'error')).toEqual(errors);
    expect(shown(found, 'warning')).toEqual([
      'first.conf:2: [DEFAULT] max_lease_duration: has no effect here: it belongs in [enforcement]',
      '--config enforcement.external_service_timeout: [enforcement] external_service_timeout: has no effect: ExternalServiceFilter is not in enabled_filters',
      'in code: [enforcement] external_service_allow_on_error: has no effect: ExternalServiceFilter is not in enabled_filters',
    ]);
  });

  it('are sorted with the warnings by file and line, with those without a line last', async () => {
    const { problems: found } = await configuration('', sources());
    const places = found.map(({ origin }) =>
      origin?.kind === 'file' ? `${origin.file.replace(/^.*\//, '')}:${origin.line}` : 'no line',
    );
    expect(places.slice(0, 8)).toEqual([
      ...['first.conf:2', 'first.conf:4', 'first.conf:4', 'first.conf:5', 'first.conf:6'],
      ...['first.conf:7', 'second.conf:2', 'second.conf:5'],
    ]);
    expect(new Set(places.slice(8))).toEqual(new Set(['no line']));
  });

  it('are sorted by the numbers of the lines, not by their text', async () => {
    const lines = Array.from({ length: 12 }, (_, index) => `typo_${index} = 1`);
    const places = (await problemsOf(...lines)).map((problem) => /:(\d+):/.exec(problem)?.[1]);
    expect(places.slice(0, 12)).toEqual(lines.map((_, index) => String(index + 2)));
  });

  it('are thrown together, with the errors in the message and the warnings in `problems`', async () => {
    const thrown: unknown = await requireConfiguration(sources(), [service]).catch((error: unknown) => error);
    expect(thrown).toBeInstanceOf(ConfigurationError);
    const { message, problems: found } = thrown as ConfigurationError;
    expect(message.split('\n')).toHaveLength(errors.length);
    expect(shown(found, 'error')).toEqual(errors);
    expect(shown(found, 'warning')).toHaveLength(3);
  });

  it('are not thrown if there are only warnings', async () => {
    const configFiles = [
      configFile(`[enforcement]\n${enabled}\nmax_lease_duration = 60\nexternal_service_timeout = 5\n`),
    ];
    const { problems: found } = await requireConfiguration({ configFiles, environment: {} });
    expect(found.map(({ severity }) => severity)).toEqual(['warning']);
  });
});

describe('warnings', () => {
  const nothing = 'warning: [enforcement] enabled_filters: no filter is enforced: every lease is allowed';

  it('report that nothing is enforced', async () => {
    expect(await problemsOf('')).toEqual([nothing]);
    expect(await problemsOf('enabled_filters =')).toEqual([nothing.replace('[', 'blazar.conf:2: [')]);
  });

  it('report audited filters', async () => {
    const tried =
      'warning: blazar.conf:3: [enforcement] audit_filters: MaxLeaseDurationFilter is tried, not enforced: it rejects no lease';
    expect(await problemsOf('', 'audit_filters = MaxLeaseDurationFilter', 'max_lease_duration = 60')).toEqual(
      [tried, nothing],
    );
    expect(await problemsOf(enabled, 'audit_filters = MaxLeaseDurationFilter')).toContain(tried);
  });

  it('do not report that nothing is enforced if a mistake may be the reason', async () => {
    for (const mistake of ['enabled_filters MaxLeaseDurationFilter', 'enabled_filters = NoSuchFilter']) {
      expect(await problemsOf(mistake)).toEqual([expect.stringMatching(/^error: blazar\.conf:2: /)]);
    }
  });

  it('report each option without effect once, but not options of an audited filter', async () => {
    expect(
      await problemsOf(
        enabled,
        'external_service_timeout = 5',
        'external_service_token = t',
        'max_lease_duration = 60',
      ),
    ).toEqual([
      'warning: blazar.conf:3: [enforcement] external_service_timeout: has no effect: ExternalServiceFilter is not in enabled_filters',
      'warning: blazar.conf:4: [enforcement] external_service_token: has no effect: ExternalServiceFilter is not in enabled_filters',
    ]);
    const tried = await problemsOf('audit_filters = MaxLeaseDurationFilter', 'max_lease_duration = 5');
    expect(tried.filter((problem) => problem.includes('has no effect'))).toEqual([]);
  });

  it('report options of [enforcement] in [DEFAULT]', async () => {
    const { problems: found } = await configuration(
      `[DEFAULT]\nenabled_filters = MaxLeaseDurationFilter\ndebug = true\n[enforcement]\n${enabled}\nmax_lease_duration = 60\n`,
    );
    expect(found.map(({ severity }) => severity)).toEqual(['warning']);
    expect(shown(found)).toEqual([
      'blazar.conf:2: [DEFAULT] enabled_filters: has no effect here: it belongs in [enforcement]',
    ]);
  });
});
