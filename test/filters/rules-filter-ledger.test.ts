import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Lease, Reservation } from '../../src/index.ts';
import { classFileName } from '../../src/plugin/class-names.ts';
import { NOT_CHARGING } from '../../src/rules/section-problems.ts';
import { ALLOWED, rejectedWith } from '../support/decisions.ts';
import { projectFile, temporaryFile } from '../support/files.ts';
import { DIALECTS, newLedgers } from '../support/ledgers.ts';
import { createHost } from '../support/requests.ts';
import { onLedger } from './on-ledger.ts';

const newLedgerOf = newLedgers();

function rulesFile(...rules: string[]): string {
  return temporaryFile('rules.yaml', `rules:\n${rules.join('\n')}\n`);
}

const AT_MOST_FOUR = `- name: four-leases
  allow: leases(context.project) < 4
  message: {expression: '"There are " + string(leases()) + " leases already."'}`;

const request = (name: string, lease: Lease = {}) => createHost({ name, ...lease });

const load = (rules: string, more: { connection?: string; enabled?: string[] } = {}) =>
  onLedger({
    enabled: more.enabled ?? ['RulesFilter'],
    options: { rules_path: rules },
    ...(more.connection !== undefined && { connection: more.connection }),
  });

it.each(DIALECTS)(
  'a rule that reads the ledger on %s lets exactly four of 24 leases through that two services are asked for at once',
  async (dialect) => {
    const connection = await newLedgerOf(dialect);
    const rules = rulesFile(AT_MOST_FOUR);
    const services = await Promise.all([load(rules, { connection }), load(rules, { connection })]);
    const decisions = await Promise.all(
      Array.from({ length: 24 }, (_, index) =>
        services[index % 2 === 0 ? 0 : 1].enforcement.checkCreate(request(`run ${index}`)),
      ),
    );
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(4);
    const refused = decisions.filter(({ allowed }) => !allowed);
    expect(refused.map(({ failed }) => failed)).toEqual(refused.map(() => false));
    expect(new Set(refused.map(({ message }) => message))).toEqual(new Set(['There are 4 leases already.']));
    // Whether the check or the commit refused it.
    const said = refused.flatMap(({ outcomes }) => outcomes.flatMap((one) => one.rules ?? []));
    expect(said.map(({ rule, outcome }) => `${rule} ${outcome}`)).toEqual(
      refused.map(() => 'four-leases rejected'),
    );
  },
);

describe('a rule that reads the ledger', () => {
  it('does not count a lease that is changed, and counts none that has ended', async () => {
    const { enforcement } = await load(rulesFile(AT_MOST_FOUR.replace('< 4', '< 1').replace('four', 'one')));
    const first = request('first');
    expect(await enforcement.checkCreate(first)).toMatchObject(ALLOWED);
    const currentLease = { ...first.lease, id: 'lease-1' };
    const update = { context: first.context, currentLease, lease: { end_date: '2026-12-03 09:00' } };
    expect(await enforcement.checkUpdate(update)).toMatchObject(ALLOWED);
    expect(await enforcement.checkCreate(request('second'))).toMatchObject({
      ...rejectedWith('There are 1 leases already.'),
      filter: 'RulesFilter',
    });
    await enforcement.onEnd({
      context: first.context,
      lease: { ...currentLease, end_date: '2026-12-03 09:00' },
    });
    expect(await enforcement.checkCreate(request('second'))).toMatchObject(ALLOWED);
  });

  it.each([
    ['reads it', 'leases() + size(lease, "physical:host") < 7'],
    ['need not read it', 'size(lease, "physical:host") < 7 || leases() < -1'],
  ])('judges what Blazar leaves of an update that fails halfway, and %s', async (_, allow) => {
    const { enforcement } = await load(rulesFile(`- {name: size, allow: '${allow}', message: Too many.}`));
    const { context, lease } = request('first');
    const hosts = (...of: readonly number[]) =>
      of.map((max, index) => ({ id: `r${index}`, resource_type: 'physical:host', min: 0, max }));
    const current = { ...lease, reservations: hosts(1, 5) };
    expect(await enforcement.checkCreate({ context, lease: current })).toMatchObject(ALLOWED);
    const update = (reservations: Reservation[]) =>
      enforcement.checkUpdate({ context, currentLease: { ...current, id: 'l' }, lease: { reservations } });
    const { message } = await update(hosts(5, 1));
    expect(message).toMatch(/^If the change failed halfway, it would leave .*: Too many\. Make several/);
    expect(await update(hosts(0, 6))).toMatchObject(ALLOWED);
  });

  it('when leases are created lets them be changed', async () => {
    const rule = AT_MOST_FOUR.replace('< 4', '< 1');
    const { enforcement } = await load(rulesFile(`${rule}\n  on: create`));
    const { context, lease } = request('first');
    expect(await enforcement.checkCreate({ context, lease })).toMatchObject(ALLOWED);
    const currentLease = { ...lease, id: 'lease-1' };
    const update = { context, currentLease, lease: { end_date: '2026-12-03 09:00' } };
    expect(await enforcement.checkUpdate(update)).toMatchObject(ALLOWED);
  });

  it('sees what other leases take of the budget that is valid at the start', async () => {
    const rules = rulesFile(`- name: half
  allow: taken(context.project) + hours(lease) <= 60.0 && left() >= hours(lease)
  message: {expression: '"Taken: " + string(taken()) + ", left: " + string(left())'}`);
    const { enforcement, budget } = await load(rules, { enabled: ['RulesFilter', 'UsageBudgetFilter'] });
    await budget({ amount: '100' });
    expect(await enforcement.checkCreate(request('first'))).toMatchObject(ALLOWED);
    expect(await enforcement.checkCreate(request('second'))).toMatchObject(ALLOWED);
    expect(await enforcement.checkCreate(request('third'))).toMatchObject(
      rejectedWith('Taken: 48, left: 52'),
    );
  });

  it('refuses where there is no budget, and logs the place', async () => {
    const { enforcement, logger } = await load(
      rulesFile('- {name: budget, allow: left() > 1.0, message: Too little.}'),
      { enabled: ['RulesFilter', 'UsageBudgetFilter'] },
    );
    const decision = await enforcement.checkCreate(request('first'));
    expect(decision).toMatchObject({ allowed: false, failed: true });
    expect(decision.outcomes[0]?.rules).toEqual([
      { rule: 'budget', outcome: 'failed', audit: false, message: null },
    ]);
    expect(JSON.stringify(logger.lines)).toMatch(/rules\.yaml:2: rule budget: allow failed: /);
  });

  it('that reads budgets is a mistake where no filter charges them', async () => {
    const rules = rulesFile(
      '- name: budget',
      '  allow: >-',
      '    hours(lease) < 1.0',
      '    || left() > 1.0',
      '  message: {expression: "string(taken())"}',
    );
    const thrown = await load(rules, { enabled: ['MaxLeasesFilter', 'RulesFilter'] }).catch(String);
    const why =
      'reads budgets, and nothing charges leases to them: add UsageBudgetFilter to [enforcement] enabled_filters; leases() counts leases without it';
    expect(thrown).toContain(`${rules}:5:8: rule budget: left() ${why}`);
    expect(thrown).toContain(`${rules}:6:33: rule budget: taken() ${why}`);
    expect(String(thrown).split(why)).toHaveLength(3);
  });

  it('reads what a budget filter charges that is only tried', async () => {
    const rules = rulesFile('- {name: none, allow: taken() == 0.0, message: Something is taken.}');
    const connection = await newLedgerOf('sqlite');
    const { enforcement, budget } = await onLedger({
      enabled: ['RulesFilter'],
      connection,
      options: { rules_path: rules, audit_filters: ['UsageBudgetFilter'] },
    });
    await budget({ amount: '100' });
    expect(await enforcement.checkCreate(request('first'))).toMatchObject(ALLOWED);
    expect(await enforcement.checkCreate(request('second'))).toMatchObject({
      allowed: false,
      message: 'Something is taken.',
    });
  });

  it('names its place when the ledger cannot be used', async () => {
    const rules = rulesFile(AT_MOST_FOUR);
    const connection = `sqlite://${temporaryFile('ledger.db', 'no database')}`;
    const thrown = await load(rules, { connection }).catch(String);
    expect(thrown).toContain(
      `${rules}:3:10: rule four-leases: leases() reads the ledger, which cannot be used`,
    );
  });

  it('that fails in audit mode is logged once for a request', async () => {
    const { enforcement, logger } = await load(
      rulesFile(
        '- {name: tried, mode: audit, allow: leases() < lease.attributes.most, message: Too many.}',
        '- {name: plain, mode: audit, allow: lease.attributes.most == 1, message: Too many.}',
      ),
    );
    expect(await enforcement.checkCreate(request('first'))).toMatchObject(ALLOWED);
    const failed = logger.lines.filter(({ message }) => message === 'rule failed');
    expect(failed.map(({ fields }) => fields.rule)).toEqual(['tried', 'plain']);
  });

  it('is asked together with the other rules, in their order', async () => {
    const { enforcement } = await load(
      rulesFile(
        '- {name: a, allow: hours(lease) < 1.0, message: Too long.}',
        '- {name: b, allow: leases() > 5, message: Too few.}',
        '- {name: c, allow: lease.name == "x", message: Not x.}',
      ),
    );
    expect(await enforcement.checkCreate(request('first'))).toMatchObject(
      rejectedWith('Too long. Too few. Not x.'),
    );
  });
});

it('rules that do not read the ledger need none', async () => {
  const { enforcement, leases } = await load(
    rulesFile('- {name: a, allow: hours(lease) < 100.0, message: Too long.}'),
  );
  expect(await enforcement.checkCreate(request('first'))).toMatchObject(ALLOWED);
  expect(enforcement.ledger).toBeUndefined();
  expect(leases()).toEqual([]);
});

it('knows which filters of the package charge no budget', () => {
  const others = readdirSync(projectFile('filters')).filter((file) => file !== 'usage-budget-filter.ts');
  expect([...NOT_CHARGING].map((name) => `${classFileName(name)}.ts`).sort()).toEqual(others.sort());
});
