import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { RulesFilter } from '../../filters/rules-filter.ts';
import { formatProblem } from '../../src/base/errors.ts';
import { decisionRecord } from '../../src/decisions/lease-record.ts';
import { readConfiguration } from '../../src/enforcement/configuration.ts';
import { ConfigurationError, type FilterServices, type Lease, UsageEnforcement } from '../../src/index.ts';
import { keystoneSection } from '../../src/openstack/options.ts';
import { ALLOWED, rejectedWith } from '../support/decisions.ts';
import { confFile, temporaryFile } from '../support/files.ts';
import { recordingLogger } from '../support/logger.ts';
import { createHost } from '../support/requests.ts';
import { rows } from '../support/rows.ts';

const REQUEST = createHost({
  name: 'a lease',
  end_date: '2026-12-06 09:00',
  reservations: [{ resource_type: 'physical:host', min: 1, max: 4 }],
});

const SIX_HOSTS = `- {name: size, allow: 'size(lease, "physical:host") <= 6', message: At most 6 hosts.}\n`;
const LONG = `- {name: long, allow: 'size(lease, "physical:host") <= 6 || hours(lease) <= 96.0', message: Too long for 8 hosts.}\n`;
const SOON = `- {name: soon, allow: 'lease.start_date - now > duration("200h")', message: Too soon.}\n`;

async function loaded(rules: string) {
  const logger = recordingLogger();
  const clock = { now: '2026-11-21T09:00:00Z' };
  const text = `[enforcement]\nenabled_filters = RulesFilter\nrules_path = ${temporaryFile('rules.yaml', rules)}\n`;
  const enforcement = await UsageEnforcement.load(
    { configFiles: [confFile(text)], environment: {} },
    { logger, clock: { now: () => new Date(clock.now) } },
  );
  onTestFinished(() => enforcement.close());
  return { enforcement, logger, clock };
}

async function problemsOf(path: string): Promise<string[]> {
  const text = `[enforcement]\nenabled_filters = RulesFilter\nrules_path = ${path}\n`;
  const { problems } = await readConfiguration({ configFiles: [confFile(text)], environment: {} }, [
    keystoneSection,
  ]);
  return problems.map((one) => `${one.severity}: ${formatProblem(one).replace(/\/\S*\//g, '')}`);
}

const problemsIn = (rules: string) => problemsOf(temporaryFile('rules.yaml', rules));

it('answers with the messages of all violated rules, and records their names', async () => {
  const { enforcement } = await loaded(`rules:
- {name: two-days, allow: hours(lease) <= 48.0, message: At most two days.}
- {name: fine, allow: 'size(lease, "physical:host") < 10', message: Never.}
- {name: two-hosts, allow: 'size(lease, "physical:host") <= 2', message: {expression: '"At most 2 hosts, not " + string(size(lease, "physical:host")) + "."'}}
`);
  const decision = await enforcement.checkCreate(REQUEST);
  expect(decision).toMatchObject({ allowed: false, failed: false, filter: 'RulesFilter' });
  expect(decision.message).toBe('At most two days. At most 2 hosts, not 4.');
  const record = decisionRecord(decision, {
    requestId: 'r',
    generation: 1,
    milliseconds: 1,
    request: REQUEST,
  });
  expect(record.filters[0]?.rules).toEqual([
    { rule: 'two-days', outcome: 'rejected', audit: false },
    { rule: 'two-hosts', outcome: 'rejected', audit: false },
  ]);
});

it('lets everything through that only rules in audit mode refuse, and says so', async () => {
  const { enforcement, logger } = await loaded(`rules:
- {name: two-days, mode: audit, allow: hours(lease) <= 48.0, message: At most two days.}
- {name: broken, mode: audit, allow: 'lease.id != "x"', message: Never.}
`);
  const decision = await enforcement.checkCreate(REQUEST);
  expect(decision).toMatchObject({ allowed: true, message: null });
  expect(decision.warnings).toEqual([
    'The rule two-days (tried, not enforced) would have rejected: At most two days.',
    'The rule broken (tried, not enforced) failed.',
  ]);
  const facts = { requestId: 'r', generation: 1, milliseconds: 1, request: REQUEST };
  expect(decisionRecord(decision, facts)).toMatchObject({ outcome: 'audit', filter: 'RulesFilter' });
  expect(JSON.stringify(logger.lines)).toMatch(
    /rules\.yaml:3: rule broken: allow failed: lease\.id is missing/,
  );
});

it('refuses with a generic sentence if a rule breaks, and logs where', async () => {
  const { enforcement, logger } = await loaded(`rules:
- {name: first, allow: hours(lease) <= 48.0, message: At most two days.}
- {name: broken, allow: 'lease.id != "x"', message: Never.}
`);
  const decision = await enforcement.checkCreate(REQUEST);
  expect(decision).toMatchObject({ allowed: false, failed: true });
  expect(decision.message).not.toMatch(/id|days|broken/);
  expect(JSON.stringify(logger.lines)).toMatch(
    /rules\.yaml:3: rule broken: allow failed: lease\.id is missing/,
  );
});

it('names the rules that broke, and what others said, in the decision', async () => {
  const { enforcement, logger } = await loaded(`rules:
- {name: first, allow: hours(lease) <= 48.0, message: At most two days.}
- {name: tried, mode: audit, allow: 'lease.id == "y"', message: Never.}
- {name: broken, allow: 'lease.id != "x"', message: Never.}
`);
  const decision = await enforcement.checkCreate(REQUEST);
  const facts = { requestId: 'r', generation: 1, milliseconds: 1, request: REQUEST };
  expect(decisionRecord(decision, facts).filters[0]).toMatchObject({
    outcome: 'failed',
    rules: [
      { rule: 'first', outcome: 'rejected', audit: false },
      { rule: 'tried', outcome: 'failed', audit: true },
      { rule: 'broken', outcome: 'failed', audit: false },
    ],
  });
  expect(JSON.stringify(logger.lines)).toMatch(
    /rules\.yaml:4: rule broken: allow failed: lease\.id is missing/,
  );
  expect(decision.warnings).toEqual(['The rule tried (tried, not enforced) failed.']);
});

it.for<[string, string, (message: string) => void]>([
  ['lease.name', 'a\nb\r\n\u202ec\u0000', (said) => expect(said).toBe('a b \\u202ec\\u0000')],
  ['lease.name', '😀'.repeat(30_000), (said) => expect(said).toBe(`${'😀'.repeat(999)}…`)],
  ['lease.name', '\u0000'.repeat(65_000), (said) => expect(said).toMatch(/^(?:\\u0000){333}.…$/)],
  [
    Array(16).fill('lease.name').join(' + '),
    'a'.repeat(65_000),
    (said) => expect(said).toBe(`${'a'.repeat(1999)}…`),
  ],
])('shows the message %s shortened and on one line', async ([expression, name, expectIt]) => {
  const { enforcement } = await loaded(
    `rules:\n- {name: a, allow: 1 > 2, message: {expression: ${expression}}}\n`,
  );
  const decision = await enforcement.checkCreate({ ...REQUEST, lease: { ...REQUEST.lease, name } });
  expect(decision).toMatchObject({ allowed: false, failed: false });
  expectIt(decision.message ?? '');
});

it('bounds what all messages say together', async () => {
  const one = (_: unknown, at: number) => `- {name: r${at}, allow: 1 > 2, message: {expression: lease.name}}`;
  const { enforcement } = await loaded(`rules:\n${Array.from({ length: 9 }, one).join('\n')}\n`);
  const lease = { ...REQUEST.lease, name: 'a'.repeat(3000) };
  const decision = await enforcement.checkCreate({ ...REQUEST, lease });
  expect(decision.message).toHaveLength(10_000);
  expect(decision.outcomes[0]?.rules).toHaveLength(9);
});

it.for<[string, RegExp]>([
  ['lease.id', /rules\.yaml:2: rule a: message failed: lease\.id is missing/],
  ['string(1 / (size(reservations) - 1))', /rule a: message failed: /],
  ['\'" " + "\\n"\'', /rule a: message failed: expected a text that is not empty/],
])('refuses with its name if the message %s breaks, and logs why', async ([expression, why]) => {
  const { enforcement, logger } = await loaded(
    `rules:\n- {name: a, allow: 1 > 2, message: {expression: ${expression}}}\n- {name: b, allow: 1 > 2, message: And b.}\n`,
  );
  expect(await enforcement.checkCreate(REQUEST)).toMatchObject({
    ...rejectedWith(
      'The rule a refuses this request. Its message is broken; please tell the operator. And b.',
    ),
    filter: 'RulesFilter',
  });
  const lines = logger.lines.filter(({ message }) => message === 'rule failed');
  expect(lines).toHaveLength(1);
  expect(String(lines[0]?.fields.error)).toMatch(why);
});

it.for([
  ['exempt: {projects: [climate]}', true],
  ['exempt: {users: [alice]}', true],
  ['exempt: {projects: [alice], users: [climate]}', false],
  ['until: "2026-11-21T10:00:00+01:00"', true],
  ['until: "2026-11-21T10:00:00Z"', false],
  ['match: "false"', true],
] as const)('judges by a rule with %s: %s', async ([more, allowed]) => {
  const { enforcement } = await loaded(
    `rules:\n- name: none\n  allow: "false"\n  message: None.\n  ${more}\n`,
  );
  expect(await enforcement.checkCreate(REQUEST)).toMatchObject({ allowed, failed: false });
});

it.for(
  rows`
    an unknown key → - {name: a, alow: "true", message: x} → rules.yaml:2:20: rule "a": unknown key "alow"; the nearest right name is "allow"
    no expression → - {name: a, message: x} → rules.yaml:2:3: rule "a": allow: expected an expression in quotes, such as "hours(lease) <= 48.0", got nothing
    a name in capitals → - {name: A b, allow: "true", message: x} → rules.yaml:2:10: rule "A b": name: expected a name such as no-gpus-at-weekends: at most 63 of a-z, 0-9 and -, got "A b"
    an end → - {name: a, on: end, allow: "true", message: x} → rules.yaml:2:17: rule "a": on: expected create, update, pod or task, or a list of these; the end of a lease is never refused, got "end"
    a date without a zone → - {name: a, until: 2027-01-31, allow: "true", message: x} → rules.yaml:2:20: rule a: until: expected a time with a zone, such as "2027-01-31T00:00:00+01:00", got "2027-01-31"
    names without Keystone → - {name: a, allow: context.project.name != "x", message: x} → rules.yaml:2: rule a: Project.name needs [keystone] resolve_names = true: without it, it is not known
    tags without Keystone → - {name: a, exempt: {tags: [x]}, allow: "true", message: x} → rules.yaml:2: rule a: exempt by tag needs [keystone] resolve_names = true: without it, it is not known
    a mistake in match → - {name: a, match: nowe > now, allow: "true", message: x} → rules.yaml:2:20: rule a: match, at create: nothing is called "nowe"; the nearest right name is "now"
    a name twice → - {name: a, allow: "true", message: x}\n- {name: a, allow: "true", message: x} → rules.yaml:3:10: rule a: the name is taken: rules.yaml:2 has a rule of this name
    a wrong exemption → - {name: a, exempt: {project: [x]}, allow: "true", message: x} → rules.yaml:2:31: rule "a": unknown key "project"; the nearest right name is "projects"
  `,
)('refuses %s with its place', async ([, rules, expected]) => {
  expect(await problemsIn(`rules:\n${rules}\n`)).toContain(`error: ${expected}`);
});

it('warns of exemptions by name that nobody knows, and refuses those that can be no id', async () => {
  const rules = `rules:
- {name: a, exempt: {projects: [climate, climate@Default], users: ["al ice@Default"]}, allow: 1 < 2, message: x}
- {name: b, on: pod, exempt: {users: [alice@example.org]}, allow: 1 < 2, message: x}
`;
  expect((await problemsIn(rules)).filter((one) => one.includes('exempt'))).toEqual([
    'warning: rules.yaml:2:42: rule a: exempt: "climate@Default" applies only if it is an id: names need [keystone] resolve_names = true',
    'error: rules.yaml:2:69: rule a: exempt: "al ice@Default" would never apply: names need [keystone] resolve_names = true',
  ]);
});

it('never refuses the end of a lease', async () => {
  const { enforcement, logger } = await loaded(`rules:
- {name: none, allow: 1 > 2, message: None.}
- {name: broken, allow: 'string(lease.attributes.none) == "x"', message: Never.}
`);
  const { context, lease } = REQUEST;
  expect(await enforcement.onEnd({ context, lease: { ...lease, id: 'l' } })).toMatchObject({
    failed: false,
    warnings: [],
  });
  expect(logger.lines.filter(({ level }) => level === 'error' || level === 'warn')).toEqual([]);
});

it('tells the log when a rule ends', async () => {
  const { enforcement, logger, clock } = await loaded(`rules:
- {name: a, until: "2099-11-21T10:00:00Z", allow: 2 < 1, message: Not yet.}
- {name: b, allow: 1 < 2, message: No.}
- {name: c, until: "2099-11-21T09:00:00Z", allow: 1 < 2, message: No.}
`);
  const ended = () => logger.lines.filter(({ message }) => message.startsWith('a rule has ended'));
  clock.now = '2099-11-21T09:59:59.999Z';
  expect(await enforcement.checkCreate(REQUEST)).toMatchObject(rejectedWith('Not yet.'));
  expect(ended()).toMatchObject([{ level: 'info', fields: { rule: 'c', line: 4 } }]);
  clock.now = '2099-11-21T10:00:00Z';
  expect(await enforcement.checkCreate(REQUEST)).toMatchObject(ALLOWED);
  expect(await enforcement.checkCreate(REQUEST)).toMatchObject(ALLOWED);
  expect(ended().slice(1)).toMatchObject([{ level: 'info', fields: { rule: 'a', line: 2 } }]);
});

it('is not opened with a mistake in its rules that was not there when they were checked', async () => {
  const rules_path = temporaryFile('rules.yaml', 'rules:\n- {name: a, allow: lease.typo, message: No.}\n');
  const services = { clock: { now: () => new Date() } } as FilterServices;
  await expect(new RulesFilter({ rules_path }, services).open()).rejects.toThrow(ConfigurationError);
});

it.for<[string, boolean, boolean]>([
  ['physical:host', true, true],
  ['virtual:instance', true, false],
  ['device', true, false],
  ['flavor:instance', false, false],
  ['virtual:floatingip', false, false],
])('reads the properties that Blazar reads of %s', async ([resource_type, resource, hypervisor]) => {
  const { enforcement } = await loaded(`rules:
- {name: r, allow: 'reservations.all(r, property(r, "gpu") == "")', message: resource}
- {name: h, allow: 'reservations.all(r, !("vcpus" in r.properties))', message: hypervisor}
`);
  const reservation = {
    resource_type,
    amount: 1,
    min: 1,
    max: 1,
    resource_properties: '["==", "$gpu", "True"]',
    hypervisor_properties: '["==", "$vcpus", "8"]',
  };
  const lease = { ...REQUEST.lease, reservations: [reservation] };
  const { message } = await enforcement.checkCreate({ ...REQUEST, lease });
  const expected = [...(resource ? ['resource'] : []), ...(hypervisor ? ['hypervisor'] : [])];
  expect(message ?? '').toBe(expected.join(' '));
});

it('rejects properties that Blazar would refuse, says why, and logs no failure', async () => {
  const { enforcement, logger } = await loaded(`rules:
- {name: a, allow: 'reservations.all(r, property(r, "gpu") == "")', message: No GPUs.}
- {name: b, match: 'reservations.exists(r, "gpu" in r.properties)', allow: "false", message: No GPUs.}
- {name: c, allow: "false", message: {expression: 'property(reservations[1], "gpu")'}}
- {name: d, mode: audit, allow: 'reservations.all(r, property(r, "gpu") == "")', message: No GPUs.}
- {name: e, allow: 'true || property(reservations[1], "gpu") == ""', message: No GPUs.}
`);
  const [host] = REQUEST.lease.reservations ?? [];
  const reservations = [{ ...host }, { ...host, resource_properties: '["~", "$gpu", "True"]' }];
  const { outcomes, ...decision } = await enforcement.checkCreate({
    ...REQUEST,
    lease: { ...REQUEST.lease, reservations },
  });
  const message =
    'reservations[1].resource_properties: expected one of =, ==, !=, >=, <=, >, < as the first of three.';
  expect(decision).toMatchObject({ allowed: false, failed: false, message: `${message} ${message}` });
  expect(outcomes[0]?.rules).toEqual(
    ['a', 'b', 'c', 'd'].map((rule) => ({ rule, outcome: 'rejected', audit: rule === 'd', message })),
  );
  expect(logger.lines.filter(({ message }) => /failed/.test(message))).toEqual([]);
});

it.each<[string, object]>([
  ['end_time', { end_time: '2026-12-09 09:00' }],
  ['end_time, and null for end_date', { end_date: null, end_time: '2026-12-09 09:00' }],
  ['end_date, and null for start_date', { start_date: null, end_date: '2026-12-09 09:00' }],
])('judges the dates after an update that has %s', async (_, lease) => {
  const { enforcement } = await loaded(
    'rules:\n- {name: r, allow: hours(lease) <= 120.0, message: Too long.}\n',
  );
  const update = { ...REQUEST, currentLease: { ...REQUEST.lease, id: 'l' }, lease: lease as Lease };
  expect(await enforcement.checkUpdate(update)).toMatchObject(rejectedWith('Too long.'));
});

it.each<[string, string, object, readonly number[], string | null]>([
  ['hosts that move', SIX_HOSTS, {}, [5, 1], 'At most 6 hosts.'],
  ['hosts that move', SIX_HOSTS.replace('{', '{mode: audit, '), {}, [5, 1], null],
  ['hosts that move back', SIX_HOSTS, {}, [0, 6], null],
  ['hosts that stay', SIX_HOSTS, { end_date: '2026-12-05 09:00' }, [1, 5], null],
  ['more hosts in a shorter time', LONG, { end_date: '2026-12-01 10:00' }, [3, 5], 'Too long for 8 hosts.'],
  ['fewer hosts in a longer time', LONG, { end_date: '2026-12-11 09:00' }, [0, 5], null],
  ['what it refuses now', SOON, { start_date: '2026-11-30 09:00' }, [2, 5], null],
])(
  'judges an update of %s also by what Blazar leaves if it fails halfway: %s',
  async (_, rule, dates, sizes, why) => {
    const { enforcement } = await loaded(`rules:\n${rule}`);
    const hosts = (of: readonly number[]) =>
      of.map((max, index) => ({ id: `r${index}`, resource_type: 'physical:host', min: 0, max }));
    const currentLease = {
      ...REQUEST.lease,
      start_date: '2026-11-28 09:00',
      id: 'l',
      reservations: hosts([1, 5]),
    };
    const update = { ...REQUEST, currentLease, lease: { ...dates, reservations: hosts(sizes) } };
    expect(await enforcement.checkUpdate(update)).toMatchObject(
      why === null
        ? ALLOWED
        : rejectedWith(
            `If the change failed halfway, it would leave a lease that is not allowed: ${why} Make several changes, first those that make the lease smaller.`,
          ),
    );
  },
);

it('refuses an update of very many reservations, which would take long to judge', async () => {
  const { enforcement } = await loaded(`rules:\n${LONG}`);
  const addresses = (count: number, amount: number) =>
    Array.from({ length: count }, (_, id) => ({ id, resource_type: 'virtual:floatingip', amount }));
  const update = (changed: number) =>
    enforcement.checkUpdate({
      ...REQUEST,
      currentLease: { ...REQUEST.lease, id: 'l', reservations: addresses(400, 1) },
      lease: { reservations: addresses(changed, 2) },
    });
  expect(await update(150)).toMatchObject(ALLOWED);
  expect(await update(200)).toMatchObject(
    rejectedWith('The change is too large to be judged. Change fewer reservations at a time.'),
  );
});

it('judges leases of a flavor, which Blazar stores as JSON in their properties', async () => {
  const { enforcement } = await loaded(
    `rules:\n- {name: r, allow: 'reservations.all(r, property(r, "gpu") == "")', message: No GPUs.}\n`,
  );
  const resource_properties = '{"id": "4", "OS-FLV-EXT-DATA:ephemeral": 0}';
  const reservations = [
    { id: 'r', resource_type: 'flavor:instance', amount: 1, flavor_id: '4', resource_properties },
  ];
  const currentLease = { ...REQUEST.lease, id: 'l', reservations };
  const update = { ...REQUEST, currentLease, lease: { end_date: '2026-12-05 09:00' } };
  expect(await enforcement.checkUpdate(update)).toMatchObject(ALLOWED);
});

it.for<[string, string]>([
  [
    'rules:\n- {name: a, on: pod, allow: "true", message: x}\n',
    'limits nothing: there is no rule for create or update in rules.yaml',
  ],
])('warns of a file that limits no lease: %j', async ([rules, expected]) => {
  expect((await problemsIn(rules)).join('\n')).toContain(`warning:`);
  expect((await problemsIn(rules)).join('\n')).toContain(expected);
});

it('warns of a rule that has ended, not of one that will end', async () => {
  const rules = `rules:
- {name: a, until: "2020-01-31T00:00:00Z", allow: "true", message: x}
- {name: b, until: "2920-01-31T00:00:00Z", allow: "true", message: x}
`;
  expect(await problemsIn(rules)).toEqual([
    'warning: rules.yaml:2:21: rule a: no longer applies: it ended at 2020-01-31T00:00:00Z',
  ]);
});

it('reads a folder in the order of its files, and refuses a name that two files have', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'rules-'));
  writeFileSync(join(folder, 'b.yaml'), 'rules:\n- {name: x, allow: "true", message: x}\n');
  writeFileSync(join(folder, 'a.yml'), 'rules:\n- {name: x, allow: "true", message: x}\n');
  writeFileSync(join(folder, '.hidden.yaml'), 'nonsense');
  expect(await problemsOf(folder)).toEqual([
    'error: b.yaml:2:10: rule x: the name is taken: a.yml:2 has a rule of this name',
  ]);
  expect(await problemsOf(join(folder, 'missing'))).toEqual([
    expect.stringContaining('expected a file or a folder that can be read'),
  ]);
});
