/** Runs one case about a lease. */

import { ConfigurationError, InvalidRequestError } from '../../base/errors.ts';
import { type Configuration, sectionOf } from '../../enforcement/configuration.ts';
import type { ObservedRule } from '../../filter/services.ts';
import type { Decision } from '../../filter/verdict.ts';
import { type Instant, toInstant } from '../../lease/dates.ts';
import { BudgetConflictError } from '../../ledger/budgets/budgets.ts';
import { keystoneSection } from '../../openstack/options.ts';
import { CaseMistake, type ReadCase } from '../cases/case-files.ts';
import type { CaseResult } from '../cases/case-report.ts';
import { differences, pathDifferences } from '../cases/expected.ts';
import {
  type ExplainedRule,
  ExplainedRules,
  explanationLines,
  RefusingRules,
} from '../cases/explanations.ts';
import {
  budgetsIn,
  type CaseAccount,
  caseKeystone,
  caseServices,
  type ExistingLease,
  giveBudget,
  giveLeases,
} from './case-peers.ts';
import type { Coverage } from './coverage.ts';
import type { LeaseCase, LeaseExpectation, ShortLease } from './lease-case.ts';
import { contextOf, requestOfCase, wholeLease } from './lease-case-request.ts';
import { type EmptyLedgers, LeaseTrial, type TriedRequest } from './lease-trial.ts';

type LeaseOutcome = Pick<CaseResult, 'status' | 'reasons'> & Partial<Pick<CaseResult, 'diff'>>;

/** @throws CaseMistake, ConfigurationError */
export async function runLeaseCase(
  read: ReadCase<LeaseCase>,
  configuration: Configuration,
  { coverage, ledgers }: { readonly coverage: Coverage; readonly ledgers: EmptyLedgers },
): Promise<LeaseOutcome> {
  const now = read.case.now === undefined ? undefined : toInstant(read.case.now);
  const services = caseServices(new Map(Object.entries(read.case.services ?? {})));
  const refusing = new RefusingRules();
  const explained = new ExplainedRules();
  const seen = coverage.of(configuration);
  const accounts = accountsOf(read.case);
  if (accounts.areGiven && !sectionOf(configuration, keystoneSection).resolve_names) {
    const message = 'the configuration has no names and tags: [keystone] resolve_names is false';
    throw CaseMistake.at(read, [read.case.keystone === undefined ? 'lease' : 'keystone'], message);
  }
  const trial = await LeaseTrial.open(configuration, {
    now,
    keystone: caseKeystone(accounts),
    http: services.http,
    ledgers,
    ruleObserver: {
      rulesRead: (rules) => seen.rulesRead(rules),
      ruleJudged: (rule, said, explain) => {
        seen.ruleJudged(rule, said);
        explained.ruleJudged(rule, said, explain);
        refusing.ruleJudged(rule, said);
      },
    },
  });
  try {
    const request = requestOfCase(read, trial.now());
    await fill(read, trial, request);
    const before = chargedIn(await budgetsIn(trial));
    refusing.rules.length = 0;
    explained.take();
    const { decision, causes } = await trial.judge(request, {
      acceptsChanges: expectsChange(read.case.expect),
    });
    if (services.unanswered.size > 0) {
      const [address] = services.unanswered;
      throw CaseMistake.at(
        read,
        ['services'],
        `the configuration asks ${address}: give its answer in services`,
      );
    }
    seen.decided(decision);
    const { failed: failure } = read.case.expect;
    const broken = decision.outcomes.filter(
      ({ failed, audit, filter }) => failed && !audit && filter !== failure,
    );
    if (broken.length > 0 || (decision.failed && decision.filter !== failure)) {
      const names = broken.map(({ filter }) => `${filter} failed`);
      return { status: 'broken', reasons: [...new Set([...names, ...causes])] };
    }
    const after = chargedIn(await budgetsIn(trial));
    const charged = { project: after.project - before.project, user: after.user - before.user };
    const reasons = leaseDifferences(read.case.expect, decision, refusing.rules, charged);
    return {
      status: reasons.length === 0 ? 'passed' : 'failed',
      reasons,
      diff: reasons.length === 0 ? '' : whyRules(explained.take()),
    };
  } finally {
    await trial.close();
  }
}

/** Explains the answers of the rules that apply. */
function whyRules(rules: readonly ExplainedRule[]): string {
  return rules
    .filter(({ said }) => said !== 'skipped')
    .map((one) =>
      `rule ${one.rule} (${one.file}:${one.line}): ${one.said}\n`.concat(
        ...explanationLines(one).map((line) => `  ${line}\n`),
      ),
    )
    .join('');
}

function accountsOf({ keystone, lease, current }: LeaseCase) {
  const projects = new Map<string, CaseAccount>(Object.entries(keystone?.projects ?? {}));
  const users = new Map<string, CaseAccount>(Object.entries(keystone?.users ?? {}));
  for (const { project, user } of [current, lease].filter((one): one is ShortLease => one !== undefined)) {
    if (typeof project === 'object') {
      projects.set(project.id, project);
    }
    if (typeof user === 'object') {
      users.set(user.id, user);
    }
  }
  const isUnavailable = keystone?.unavailable ?? false;
  return { projects, users, isUnavailable, areGiven: projects.size + users.size > 0 || isUnavailable };
}

/** Fills the ledger. It contains the lease before an update, like Blazar. */
async function fill(read: ReadCase<LeaseCase>, trial: LeaseTrial, request: TriedRequest): Promise<void> {
  const { leases = [], budgets = [] } = read.case.ledger ?? {};
  if (trial.ledger === undefined) {
    if (leases.length + budgets.length > 0) {
      throw CaseMistake.at(read, ['ledger'], 'ledger: no filter of the configuration uses the ledger');
    }
    return;
  }
  for (const [index, budget] of budgets.entries()) {
    await giveBudget(trial, budget).catch((thrown: unknown) => {
      throw thrown instanceof InvalidRequestError || thrown instanceof BudgetConflictError
        ? CaseMistake.at(read, ['ledger', 'budgets', index], `ledger.budgets.${index}: ${thrown.message}`)
        : thrown;
    });
  }
  const now: Instant = trial.now();
  const existing: ExistingLease[] = leases.map((short, index) => ({
    context: contextOf(short),
    lease: { id: `lease-${index + 1}`, ...wholeLease(short, now) },
  }));
  const current =
    request.operation === 'update' ? [{ context: request.context, lease: request.currentLease }] : [];
  await giveLeases(trial, [...existing, ...current]).catch((thrown: unknown) => {
    throw thrown instanceof ConfigurationError || !(thrown instanceof Error)
      ? thrown
      : CaseMistake.at(read, ['ledger'], `ledger: a lease cannot be recorded: ${thrown.message}`);
  });
}

/** From millionths of a unit for a second to millionths of unit-hours. */
const SECONDS_PER_HOUR = 3600n;

function chargedIn(budgets: Awaited<ReturnType<typeof budgetsIn>>): Charged {
  const sum = (isUser: boolean) =>
    Number(
      budgets
        .filter(({ userId }) => (userId !== null) === isUser)
        .reduce((total, { taken }) => total + taken, 0n) / SECONDS_PER_HOUR,
    );
  return { project: sum(false), user: sum(true) };
}

/** The charge of the lease to budgets, in millionths of unit-hours; for an update, the change. */
interface Charged {
  /** To budgets of whole projects. */
  readonly project: number;
  /** To budgets of single users. */
  readonly user: number;
}

/** Whether a lease changed by filters counts as allowed. The service refuses it: Blazar cannot use it. */
function expectsChange(expected: LeaseExpectation): boolean {
  const { answer, lease_paths } = expected;
  return answer === 'changed' || answer === 'unchanged' || lease_paths !== undefined;
}

function leaseDifferences(
  expected: LeaseExpectation,
  decision: Decision,
  refusing: readonly ObservedRule[],
  charged: Charged,
): string[] {
  const { filter, failed, lease_paths } = expected;
  const { exempt, message, outcomes } = decision;
  const rules = refusing.map(({ name }) => name);
  const changing = outcomes.filter((one) => one.changed && !one.audit);
  const got = {
    ...decision,
    rules,
    ...(exempt && { allowedAs: ': its project is exempt' }),
    by: rules.length === 0 ? decision.filter : `${decision.filter} (${rules.join(', ')})`,
    changedBy: changing.map((one) => one.filter),
  };
  return differences(
    expected,
    got,
    [filter, failed],
    [
      filter !== undefined &&
        decision.filter !== filter &&
        `expected ${filter} to reject it, but it was ${decision.filter}: ${message}`,
      failed !== undefined &&
        decision.filter === failed &&
        !decision.failed &&
        `expected ${failed} to fail, but it rejected the lease: ${message}`,
      ...chargeDifferences(expected.charged, charged),
      ...pathDifferences('lease', lease_paths, [decision.lease]),
    ],
  );
}

/** Cases have at most six decimals. */
const MILLION = 1_000_000;

function chargeDifferences(expected: LeaseExpectation['charged'], got: Charged): string[] {
  const wanted = typeof expected === 'object' ? expected : { project: expected };
  return (['project', 'user'] as const).flatMap((owner) => {
    const amount = wanted[owner];
    const charged = got[owner];
    return amount === undefined || Math.round(amount * MILLION) === charged
      ? []
      : [`expected ${amount} unit-hours charged to the budget of the ${owner}, got ${charged / MILLION}`];
  });
}
