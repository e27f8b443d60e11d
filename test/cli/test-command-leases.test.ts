/** What a case about a lease can say, and what comes of it. */
import { describe, expect, it } from 'vitest';
import { caseIn, confWith, NOW } from '../support/lease-cases.ts';
import { rows } from '../support/rows.ts';

const BUDGETS = confWith(', UsageBudgetFilter');
const KEYSTONE =
  '[keystone]\nauth_url = https://keystone.example.org:5000/v3\nuser_id = u\npassword = p\nresolve_names = true\n';

describe('a lease in short', () => {
  it.for(rows`
    a host for an hour from now → {} → {start_date: "2026-11-21T09:00:00", end_date: "2026-11-21T10:00:00", "reservations[0].max": 1}
    dates from now → {start: +1w, end: +8d12h30m} → {start_date: "2026-11-28T09:00:00", end_date: "2026-11-29T21:30:00"}
    other dates → {start: 2026-12-01 08:00, hours: 1.5} → {start_date: "2026-12-01T08:00:00", end_date: "2026-12-01T09:30:00"}
    other resources → {resource_type: "virtual:floatingip", size: 3} → {"reservations[0].amount": 3, "reservations[0].max": null}
    several reservations → {reservations: [{}, {hosts: 2, attributes: {before_end: "10"}}]} → {"reservations[1].max": 2, "reservations[1].before_end": "10"}
    what plug-ins add → {attributes: {"__proto__": 1, events: []}} → {events: []}
  `)('has %s', async ([, lease, paths]) => {
    expect(await caseIn(`${NOW}lease: ${lease}\nexpect: {lease_paths: ${paths}}\n`)).toBe('passed');
  });

  it('is changed by an update where the update says so', async () => {
    const paths = {
      start_date: '2026-11-20T09:00:00',
      end_date: '2026-11-24T09:00:00',
      'reservations[0].max': 3,
      'reservations[0].id': 'reservation-1',
    };
    const text = `${NOW}current: {start: -1d, days: 2, hosts: 3}\nlease: {days: 4}\nexpect: ${JSON.stringify({ lease_paths: paths })}\n`;
    expect(await caseIn(text)).toBe('passed');
  });
});

describe('what is expected of a lease', () => {
  it('is what budgets are charged, beside what leases have used', async () => {
    const ledger = `ledger:
  budgets:
    - {project: climate, from: -10d, until: +10d, amount: 100}
    - {project: climate, user: ada, from: -10d, until: +10d, amount: "50.5"}
  leases: [{project: climate, user: bob, start: -2d, days: 3, hosts: 1}]
`;
    const lease = 'lease: {project: climate, user: ada, hours: 5, hosts: 2}\n';
    const run = (expected: string) => caseIn(`${NOW}${ledger}${lease}expect: ${expected}\n`, BUDGETS);
    expect(await run('{charged: 10}')).toBe('passed');
    expect(await run('{charged: {project: 10, user: 10}}')).toBe('passed');
    expect(await run('{charged: {user: 10.5}}')).toBe(
      'failed expected 10.5 unit-hours charged to the budget of the user, got 10',
    );
    const dear = 'lease: {project: climate, user: bob, hours: 15, hosts: 2}\n';
    const refused = '{filter: UsageBudgetFilter, rejected: /28 node-hours/}';
    expect(await caseIn(`${NOW}${ledger}${dear}expect: ${refused}\n`, BUDGETS)).toBe('passed');
  });

  it('is what an update adds', async () => {
    const budget = 'ledger: {budgets: [{project: project, from: -10d, until: +10d, amount: 100}]}\n';
    const text = `${NOW}${budget}current: {start: -1d, days: 2}\nlease: {days: 4}\nexpect: {charged: 48}\n`;
    expect(await caseIn(text, BUDGETS)).toBe('passed');
  });

  it('is what Keystone calls a project, if the configuration asks for it', async () => {
    const conf = confWith(
      ', MaxLeaseDurationFilter',
      `max_lease_duration = 86400\nmax_lease_duration_project_limits = climate@Science:172800\nexempt_projects = free@Default\n${KEYSTONE}`,
    );
    const run = (text: string, own = conf) => caseIn(`${NOW}${text}`, own);
    const named = 'lease: {days: 2, project: {id: p1, name: climate, domain: Science}}\n';
    expect(await run(`${named}expect: allowed\n`)).toBe('passed');
    expect(await run('lease: {days: 2, project: climate}\nexpect: {filter: MaxLeaseDurationFilter}\n')).toBe(
      'passed',
    );
    expect(await run('lease: {days: 9, project: free}\nexpect: allowed\n')).toBe('passed');
    const away = `keystone: {unavailable: true}\n${named}`;
    expect(await run(`${away}expect: rejected\n`)).toBe('passed');
    expect(await run(`${named}expect: allowed\n`, confWith(''))).toMatch(
      /^mistake see the error.*one\.yaml:2: the configuration has no names and tags: \[keystone\] resolve_names is false\n$/,
    );
  });

  it('depends on answers of other services, which the case gives', async () => {
    const conf = (more = '') =>
      confWith(
        ', ExternalServiceFilter',
        `external_service_base_endpoint = https://policy.example.org/v1\n${more}`,
      );
    const answer = (one: string) => `${NOW}services: {/v1/check-create: ${one}}\nlease: {}\n`;
    expect(await caseIn(`${answer('{status: 204}')}expect: allowed\n`, conf())).toBe('passed');
    const no = answer('{status: 403, body: {message: not on Sundays}}');
    expect(await caseIn(`${no}expect: {filter: ExternalServiceFilter, rejected: Sundays}\n`, conf())).toBe(
      'passed',
    );
    const late = answer('{error: timeout}');
    expect(await caseIn(`${late}expect: rejected\n`, conf())).toMatch(
      /^broken ExternalServiceFilter failed; .*timeout/,
    );
    expect(await caseIn(`${late}expect: {failed: ExternalServiceFilter}\n`, conf())).toBe('passed');
    const onError = conf('external_service_allow_on_error = true\n');
    expect(await caseIn(`${late}expect: {warning: ExternalServiceFilter}\n`, onError)).toBe('passed');
    // Without an answer nothing is known, whatever the configuration does about failures.
    for (const own of [conf(), onError]) {
      expect(await caseIn(`${NOW}lease: {}\nexpect: allowed\n`, own)).toMatch(
        /^mistake see the error.*one\.yaml:1: the configuration asks https:\/\/policy\.example\.org\/v1\/check-create: give its answer in services\n$/,
      );
    }
  });

  it('is what audited filters would refuse', async () => {
    const conf = confWith('', 'audit_filters = MaxLeaseDurationFilter\nmax_lease_duration = 60\n');
    expect(await caseIn(`${NOW}lease: {}\nexpect: {warning: /would have rejected/}\n`, conf)).toBe('passed');
    expect(await caseIn(`${NOW}lease: {}\nexpect: {warning: other}\n`, conf)).toMatch(
      /^failed expected the warnings/,
    );
  });

  it.for(rows`
    another filter → lease: {properties: {gpu: "True"}} → {filter: Other} → expected Other to reject it, but it was RulesFilter: GPUs are not for lease.
    another message → lease: {properties: {gpu: "True"}} → {rejected: days} → expected the message to contain days, but it is: GPUs are not for lease.
    a change → lease: {} → changed → expected a change, but nothing was changed
    other values → lease: {} → {lease_paths: {"reservations[0].max": 2}} → lease: reservations[0].max: expected 2, got 1
    a charge → lease: {} → {charged: 1} → expected 1 unit-hours charged to the budget of the project, got 0
  `)('is told if it is %s', async ([, lease, expected, why]) => {
    expect(await caseIn(`${NOW}${lease}\nexpect: ${expected}\n`)).toBe(`failed ${why}`);
  });
});

describe('a mistake in a case', () => {
  it.for(rows`
    an unknown key → lease: {}\nexpct: allowed\n → :2: the key "expct" is unknown; the nearest right name is "expect"
    one of a list of cases → cases:\n  - lease: {}\n    expect: allowed\n  - lease: {}\n    expct: allowed\n → :5: the key "expct" is unknown
    one of a given project → lease: {}\nexpect: allowed\nkeystone:\n  projects:\n    p1: {tag: []}\n → :5: keystone.projects.p1: the key "tag" is unknown; the nearest right name is "tags"
    a time that is none → lease: {start: tomorrow}\nexpect: allowed\n → :1: lease.start: expected a time such as
    an end before the start → lease: {end: -1d}\nexpect: allowed\n → :1: lease: lease.end_date: expected a date that is not before
    two ends → lease: {days: 1, hours: 2}\nexpect: allowed\n → :1: lease.days: contradicts hours
    a body that is none → request: {context: {}}\nexpect: allowed\n → :1: request:
    a truth where Blazar has a text → lease: {properties: {gpu: true}}\nexpect: allowed\n → :1: lease.properties
    no request → now: 2026-11-21\nexpect: allowed\n → :1: expected request, lease, pod or task
    no expectation → lease: {}\n → :1: expect: expected allowed, changed, unchanged, rejected, or a mapping
    a result of a refusal → lease: {}\nexpect: {rejected: a, charged: 1}\n → :2: expect.charged: a rejected lease has no result
    no list → cases: {}\n → :1: cases: expected a list
    a case that is a text → cases: [a]\n → :1: expected a mapping with request or lease, and expect
  `)('is %s', async ([, text, told]) => {
    const shown = await caseIn(text);
    expect(shown).toContain(told);
  });

  it('is a budget that cannot be', async () => {
    const budget = 'ledger: {budgets: [{project: a, from: +1d, until: now, amount: 1}]}\n';
    expect(await caseIn(`${NOW}${budget}lease: {}\nexpect: allowed\n`, BUDGETS)).toContain(
      ':2: ledger.budgets.0: until: expected a date after the start',
    );
  });
});
