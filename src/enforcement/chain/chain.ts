/** Calls the filters of a chain for a lease, and decides whether it is allowed. */
import { isDeepStrictEqual } from 'node:util';
import type { Wait } from '../../base/deadline.ts';
import type { Logger } from '../../base/logger.ts';
import { AccountList, accountText, projectOf } from '../../filter/account-limits.ts';
import type { Decision, Outcome } from '../../filter/verdict.ts';
import type { Lease } from '../../lease/lease.ts';
import { readOnly } from '../../lease/read-only.ts';
import {
  type ChainedFilter,
  type CheckOptions,
  callHook,
  callOnEnd,
  type EndHookRequest,
  type HookRequest,
  type HookResult,
  type invokeHook,
} from './hook.ts';
import { describeChanges, FAILED_MESSAGE, logAudit, outcomeWarnings } from './messages.ts';

/** If filters still change the lease in this round, they contradict each other. */
const MAX_PASSES = 5;

interface DecideOptions {
  readonly explain?: CheckOptions['explain'] | undefined;
  readonly acceptsChanges?: CheckOptions['acceptsChanges'] | undefined;
  /**
   * From this position on, filters are not called for a lease that is allowed so far: the caller checks them
   * in the transaction that records it. Only `LedgerFilter`s can be left out, which change no lease and use
   * only the ledger. Default: all are called.
   */
  readonly askedUpTo?: number;
  /** Calls hooks in another way, and returns the filter's result. */
  readonly invoke?: typeof invokeHook | undefined;
}

/**
 * Calls the filters in order. If one changes the lease, calls all of them again with the result, until a
 * round changes nothing: every filter has then accepted exactly the returned lease.
 */
export async function decide(
  chain: readonly ChainedFilter[],
  original: Lease,
  request: HookRequest,
  { explain = false, acceptsChanges = true, askedUpTo = chain.length, invoke }: DecideOptions,
  logger: Logger,
): Promise<Decision> {
  const { operation, wait } = request;
  const outcomes: Outcome[] = [];
  let lease = original;
  let view = readOnly(original);
  let rejection: Outcome | undefined;
  let lastChange: Outcome | undefined;
  let hasChanged = true;
  for (let round = 1; hasChanged && rejection === undefined; round += 1) {
    hasChanged = false;
    for (const [position, member] of chain.entries()) {
      const { audit } = member;
      const isLeftOut =
        rejection !== undefined
          ? // After a rejection only audited filters are called, while there is time: to report what they would refuse.
            !explain && (!audit || isOver(wait))
          : // After a change that the caller cannot accept, no transaction follows: all are called.
            position >= askedUpTo && (acceptsChanges || lastChange === undefined);
      if (isLeftOut) {
        continue;
      }
      const started = performance.now();
      const answer = callHook(member, view, request, logger, invoke);
      const result = answer instanceof Promise ? await answer : answer;
      const { verdict } = result;
      const changed = verdict.allowed && !isSame(verdict.lease, lease) ? verdict.lease : undefined;
      const latest = outcomeOf(member, result, performance.now() - started, changed !== undefined);
      const outcome = afterRound(outcomes[position], latest);
      outcomes[position] = outcome;
      if (isTried(outcome)) {
        logAudit(logger, request, outcome);
      }
      if (audit) {
        continue;
      }
      if (!outcome.allowed) {
        rejection ??= outcome;
      } else if (changed !== undefined) {
        lease = changed;
        view = readOnly(changed);
        lastChange = outcome;
        hasChanged = true;
      }
    }
    if (round === MAX_PASSES && hasChanged && rejection === undefined && lastChange !== undefined) {
      const { filter } = lastChange;
      logger.error({ operation, filter }, `filters kept changing the lease for ${MAX_PASSES} runs`);
      rejection = { ...lastChange, allowed: false, failed: true, message: FAILED_MESSAGE };
    }
  }
  if (rejection !== undefined) {
    // The array has holes for filters that were not called: `Object.values` skips them.
    return refused(operation, original, rejection, Object.values(outcomes));
  }
  if (lastChange !== undefined && !acceptsChanges) {
    const message = `The lease would be allowed with other values: ${describeChanges(original, lease)}.`;
    return refused(operation, original, { ...lastChange, message }, outcomes);
  }
  return accepted(operation, lease, lastChange !== undefined, outcomes);
}

/** Calls `onEnd` of every filter, concurrently. Never throws. */
export function tellEnd(
  chain: readonly ChainedFilter[],
  request: EndHookRequest,
  logger: Logger,
): Promise<Outcome[]> {
  return Promise.all(
    chain.map(async (member) => {
      const started = performance.now();
      const result = await callOnEnd(member, request, logger);
      return outcomeOf(member, result, performance.now() - started);
    }),
  );
}

function isOver(wait: Wait): boolean {
  try {
    wait.throwIfOver();
    return false;
  } catch {
    return true;
  }
}

/** Whether a filter left the lease unchanged. An equal copy counts as unchanged. */
function isSame(answered: Lease | undefined, lease: Lease): boolean {
  return answered === undefined || isDeepStrictEqual(answered, lease);
}

/** `changed`: whether the verdict has a lease that differs from the filter's input. */
export function outcomeOf(
  { name, audit }: Pick<ChainedFilter, 'name' | 'audit'>,
  { verdict, failed }: HookResult,
  milliseconds: number,
  changed = false,
): Outcome {
  const outcome = {
    filter: name,
    allowed: verdict.allowed,
    message: verdict.allowed ? null : verdict.message,
    failed,
    onError: verdict.allowed && verdict.onError === true,
    audit,
    changed,
    milliseconds,
  };
  return verdict.rules === undefined ? outcome : { ...outcome, rules: verdict.rules };
}

/** The latest verdict counts; `changed` and `onError` of earlier rounds are kept. */
function afterRound(before: Outcome | undefined, latest: Outcome): Outcome {
  return before === undefined
    ? latest
    : {
        ...latest,
        onError: before.onError || latest.onError,
        changed: before.changed || latest.changed,
        milliseconds: before.milliseconds + latest.milliseconds,
      };
}

/** A commit may add a rejection or a failure to the outcome of the check, and removes nothing. */
export function afterCommit(before: Outcome | undefined, commit: Outcome): Outcome {
  return before === undefined
    ? commit
    : {
        ...(commit.allowed ? before : commit),
        failed: before.failed || commit.failed,
        onError: before.onError || commit.onError,
        changed: before.changed,
        milliseconds: before.milliseconds + commit.milliseconds,
      };
}

/** Every filter has allowed the lease in this form. */
export function accepted(
  operation: Decision['operation'],
  lease: Lease,
  changed: boolean,
  outcomes: Outcome[],
): Decision {
  return {
    operation,
    allowed: true,
    lease,
    changed,
    message: null,
    filter: null,
    failed: false,
    exempt: false,
    warnings: warningsOf(outcomes),
    outcomes,
  };
}

/** This outcome refuses the lease. The lease is returned unchanged. */
export function refused(
  operation: Decision['operation'],
  lease: Lease,
  { filter, message, failed }: Outcome,
  outcomes: Outcome[],
): Decision {
  return { ...accepted(operation, lease, false, outcomes), allowed: false, message, filter, failed };
}

const NO_WARNINGS: readonly string[] = [];

function warningsOf(outcomes: readonly Outcome[]): readonly string[] {
  return outcomes.some((outcome) => outcome.onError || isTried(outcome))
    ? outcomes.flatMap(outcomeWarnings)
    : NO_WARNINGS;
}

/** Whether the filter, or one of its rules that rejected, is audited and not enforced. */
export function isTried({ audit, rules }: Pick<Outcome, 'audit' | 'rules'>): boolean {
  return audit || rules?.some((rule) => rule.audit) === true;
}

/** The projects in `exempt_projects`: no filter is called for their leases. */
export class Exemptions {
  /** By id, or as `name@domain`. */
  readonly projects: readonly string[];
  readonly #list: AccountList;
  readonly #logger: Logger;

  constructor(projects: readonly string[], logger: Logger) {
    this.projects = projects;
    this.#list = new AccountList(projects);
    this.#logger = logger;
  }

  /** The decision for an exempt project; `undefined` = not exempt: the filters decide. */
  of(lease: Lease, { operation, context, call }: HookRequest): Decision | undefined {
    const project = projectOf(context, call.names);
    if (!this.#list.has(project)) {
      return undefined;
    }
    const { project_id } = context;
    const warning = `${capitalized(accountText(project))} is in exempt_projects: no filter was asked.`;
    this.#logger.info({ operation, project_id }, warning);
    return { ...accepted(operation, lease, false, []), exempt: true, warnings: [warning] };
  }
}

function capitalized(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
}
