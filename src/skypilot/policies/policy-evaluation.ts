/** Calls policies for a request. Enforced answers count, others are logged. Throws no error of a policy. */
import { Deadline, inTime } from '../../base/deadline.ts';
import type { Logger } from '../../base/logger.ts';
import { inSpan } from '../../base/tracing.ts';
import { visibleLines } from '../../base/visible-text.ts';
import { type RuleOutcomes, rulesOfFailure } from '../../filter/verdict.ts';
import type { OpenLaunchLedger } from '../charging/open-launch-ledger.ts';
import type { ConfigValidation, Mismatch, Places } from '../config/config-validation.ts';
import type { ReceivedRequest } from '../request/wire.ts';
import {
  auditWarning,
  FAILED,
  type PolicyOutcome,
  type Refusal,
  type RefusedBy,
  refusedOutcome,
  type State,
} from '../review.ts';
import { SecretValues } from '../secrets.ts';
import { causeText, type Question, stackText } from './call-policy.ts';
import type { PolicyRunner } from './policy-runner.ts';

/** Maximum number of calls of a policy for one request. Policies that need more never agree. */
export const MAX_PASSES = 5;

export interface ChainedPolicy {
  readonly runner: PolicyRunner;
  readonly audit: boolean;
  /** Records launches: called when all others agree. */
  readonly charges: boolean;
  /** Judges only the original request, not changes by later policies. */
  readonly isAskedOnce: boolean;
}

/** Context of a call. */
export interface ReviewOptions {
  readonly deadline: Deadline;
  /** Added to the log line of a failure. */
  readonly requestId?: string | undefined;
  /** Where the request was written, for messages. */
  readonly places?: Places | undefined;
}

/** One request on its way through the policies. */
export interface Call extends ReviewOptions {
  readonly request: ReceivedRequest;
  /** As left by the policies that were called. */
  state: State;
  refusal: RefusedBy | undefined;
  /** By policy, in order. */
  readonly outcomes: Map<string, PolicyOutcome | Promise<PolicyOutcome>>;
  /** Changes by policies, also by audited ones. A policy that is called several times may have several. */
  readonly steps: { readonly policy: string; readonly before: State; readonly after: State }[];
  readonly notes: string[];
  readonly mismatches: string[];
}

interface Answered {
  readonly answer: State | Refusal;
  readonly outcome: PolicyOutcome;
}

export class PolicyEvaluation {
  readonly #validation: ConfigValidation;
  readonly #launches: OpenLaunchLedger | undefined;
  readonly #logger: Logger;

  constructor(validation: ConfigValidation, launches: OpenLaunchLedger | undefined, logger: Logger) {
    this.#validation = validation;
    this.#launches = launches;
    this.#logger = logger;
  }

  /**
   * Calls policies in order, and calls those again that were called before another one changed the request,
   * until nothing changes: guarantees of an earlier policy hold for the final result.
   */
  async untilAgreed(policies: readonly ChainedPolicy[], call: Call): Promise<void> {
    // The request as each policy left it: policies are idempotent, so they would not change it again.
    const left = new Map<ChainedPolicy, State>();
    const agrees = (policy: ChainedPolicy): boolean => {
      const own = left.get(policy);
      return own !== undefined && (policy.isAskedOnce || !isChanged(call.state, own));
    };
    for (let round = 1; round <= MAX_PASSES; round += 1) {
      const changed: string[] = [];
      for (const policy of policies) {
        const { runner, audit } = policy;
        if (audit && round === 1) {
          // The others do not wait for it: a hanging policy must not use up their time.
          const tried = this.#tryOut(runner, call);
          tried.catch(() => {});
          call.outcomes.set(runner.name, tried);
        } else if (!audit && call.refusal === undefined && !agrees(policy)) {
          const before = call.state;
          await this.#enforce(runner, call);
          left.set(policy, call.state);
          changed.push(...(isChanged(call.state, before) ? [runner.name] : []));
        }
      }
      if (call.refusal !== undefined || changed.length === 0) {
        return;
      }
      if (round === MAX_PASSES && !policies.every((one) => one.audit || agrees(one))) {
        this.#disagree(changed, call);
      }
    }
  }

  /** The answer takes effect, unless it does not match SkyPilot's schema. */
  async #enforce(runner: PolicyRunner, call: Call): Promise<void> {
    const { name } = runner;
    const before = call.state;
    const { answer, outcome } = await this.#answerOf(runner, false, call, call.deadline);
    let latest = outcome;
    if ('message' in answer) {
      call.refusal = { ...answer, policy: name };
    } else {
      const invalid = outcome.changed ? this.#validation.ofAnswer(name, before, answer) : undefined;
      if (invalid !== undefined && !call.mismatches.includes(name)) {
        call.mismatches.push(name);
        call.notes.push(...(invalid.isEnforced ? [] : [invalid.message]));
      }
      if (invalid?.isEnforced === true) {
        this.logFailure(name, new TypeError(invalid.message), answer, call);
        call.refusal = { ...FAILED, policy: name };
        latest = refusedOutcome(outcome, FAILED);
      } else {
        if (invalid !== undefined) {
          this.logMismatch(name, invalid, call);
        }
        addStep(call, outcome, before, answer);
        call.state = answer;
      }
    }
    const earlier = await call.outcomes.get(name);
    call.outcomes.set(
      name,
      earlier === undefined
        ? latest
        : {
            ...latest,
            changed: latest.allowed && (earlier.changed || latest.changed),
            milliseconds: earlier.milliseconds + latest.milliseconds,
          },
    );
  }

  /** Calls an audited policy, with half of the remaining time, and logs what it would have done. */
  async #tryOut(runner: PolicyRunner, call: Call): Promise<PolicyOutcome> {
    const before = call.state;
    const deadline = new Deadline(call.deadline.milliseconds / 2000);
    try {
      const { answer, outcome } = await this.#answerOf(runner, true, call, deadline);
      if (!('message' in answer)) {
        addStep(call, outcome, before, answer);
      }
      const warning = auditWarning(outcome);
      if (warning !== undefined) {
        this.#logger.warn({ ...known(call), policy: runner.name, user_id: call.request.user?.id }, warning);
      }
      return outcome;
    } finally {
      this.#launches?.adopt(deadline, call.deadline);
      deadline.end();
    }
  }

  /**
   * Policies undo each other's changes, so it is unclear which should hold. `names`: the policies that still
   * changed the request in the last round.
   */
  #disagree(names: readonly string[], call: Call): void {
    for (const [name, outcome] of call.outcomes) {
      if (names.includes(name) && !(outcome instanceof Promise)) {
        call.outcomes.set(name, refusedOutcome(outcome, FAILED));
      }
    }
    const [policy = ''] = names;
    call.refusal = { ...FAILED, policy };
    const cause = new Error(
      `the policies do not agree: asked ${MAX_PASSES} times, ${names.join(' and ')} still changed what another policy, or the policy itself, had set`,
    );
    this.logFailure(policy, cause, call.state, call);
  }

  /** The span is on this side also for a policy in a thread, to include the wait. */
  async #answerOf(runner: PolicyRunner, audit: boolean, call: Call, deadline: Deadline): Promise<Answered> {
    const { name } = runner;
    const { state } = call;
    const attributes = {
      'blazar_enforcement.policy.name': name,
      'blazar_enforcement.policy.side': call.request.atClientSide ? 'client' : 'server',
    };
    const started = performance.now();
    const { answer, rules } = await inSpan(
      { name: `policy ${name}`, attributes },
      () => this.#asked(runner, state, call, deadline),
      (asked) => said(asked.answer, state),
    );
    const about = { policy: name, audit, milliseconds: performance.now() - started, ...rules };
    const outcome =
      'message' in answer
        ? { ...about, ...answer, allowed: false, changed: false }
        : { ...about, allowed: true, message: null, failed: false, changed: isChanged(answer, state) };
    return { answer, outcome };
  }

  async #asked(
    runner: PolicyRunner,
    state: State,
    call: Call,
    deadline: Deadline,
  ): Promise<{ answer: State | Refusal; rules: Pick<PolicyOutcome, 'rules'> }> {
    const { request } = call;
    try {
      deadline.throwIfOver();
      const asked = runner.ask(questionOf(state, request), deadline);
      const { rules, ...answer } = asked instanceof Promise ? await inTime(asked, deadline) : asked;
      deadline.throwIfOver();
      const hide = hiding(state, request);
      return {
        answer:
          'rejected' in answer
            ? { message: shownReason(runner.name, answer.rejected, hide), failed: false }
            : answer,
        rules: rulesShown(runner.name, rules, hide),
      };
    } catch (thrown) {
      this.logFailure(runner.name, thrown, state, call);
      const rules = rulesShown(runner.name, rulesOfFailure(thrown), hiding(state, request));
      return { answer: FAILED, rules };
    }
  }

  logMismatch(policy: string, { message, isNew }: Mismatch, call: Call): void {
    if (isNew) {
      const fields = { ...known(call), policy, user_id: call.request.user?.id, problem: message };
      this.#logger.warn(fields, 'a task or configuration of SkyPilot does not match its schema');
    }
  }

  /** Logs the cause with its own causes and their stacks. */
  logFailure(policy: string | null, thrown: unknown, state: State, call: Call): void {
    const hide = hiding(state, call.request);
    const stack = stackText(thrown);
    const error = cut(hide(causeText(thrown)));
    const fields = { ...known(call), policy, error, ...(stack !== undefined && { stack: hide(stack) }) };
    this.#logger.error(fields, 'policy failed');
  }
}

/** Stores the request before and after a policy, if the policy changed it. */
function addStep(call: Call, { policy, changed }: PolicyOutcome, before: State, after: State): void {
  if (changed) {
    call.steps.push({ policy, before, after });
  }
}

/** Messages of rules may quote the request, like the reason of a rejection. */
function rulesShown(
  policy: string,
  rules: RuleOutcomes | undefined,
  hide: Hide,
): Pick<PolicyOutcome, 'rules'> {
  return rules === undefined
    ? {}
    : {
        rules: rules.map((one) => ({
          ...one,
          message: one.message === null ? null : shownReason(policy, one.message, hide),
        })),
      };
}

export function known({ requestId }: Call): { request_id?: string } {
  return requestId === undefined ? {} : { request_id: requestId };
}

function said(answer: State | Refusal, state: State) {
  const failed = 'message' in answer && answer.failed;
  const verdict = failed
    ? 'failed'
    : 'message' in answer
      ? 'rejected'
      : isChanged(answer, state)
        ? 'changed'
        : 'allowed';
  return {
    attributes: {
      'blazar_enforcement.policy.verdict': verdict,
      'blazar_enforcement.policy.failed': failed,
    },
    errorType: failed ? '_OTHER' : undefined,
  };
}

function questionOf(state: State, request: ReceivedRequest): Question {
  const { requestName, requestOptions, atClientSide, user, clientApiVersion, clientVersion } = request;
  return { ...state, requestName, requestOptions, atClientSide, user, clientApiVersion, clientVersion };
}

/** A policy's answer shares its unchanged parts. */
function isChanged(answer: State, state: State): boolean {
  return answer.task !== state.task || answer.skypilotConfig !== state.skypilotConfig;
}

// Texts of policies for the user and for the log: without secrets, and bounded.

/** Maximum length of a text that is searched for secrets, in characters. */
const MAX_SEARCHED = 16_000;
/** Dropped from the end of a longer text: it may be a part of a secret, which is not recognized. */
const DROPPED = 4000;
/** Maximum length of a displayed reason, and of a cause in the log, in characters. */
const MAX_SHOWN = 8000;

type Hide = (text: string) => string;

/** Hides secrets of the request and of policies in a policy's texts. Collects them on first use. */
function hiding({ task, skypilotConfig }: State, request: ReceivedRequest): Hide {
  let secrets: SecretValues | undefined;
  return (text) => {
    secrets ??= SecretValues.of(request.task.value, request.skypilotConfig.value, task, skypilotConfig);
    const hidden = secrets.hideIn(text.slice(0, MAX_SEARCHED));
    return text.length > MAX_SEARCHED ? `${hidden.slice(0, Math.max(0, hidden.length - DROPPED))}…` : hidden;
  };
}

/** The reason for the user: without secrets, and without characters that control a terminal. */
function shownReason(policy: string, rejected: string, hide: Hide): string {
  const text = visibleLines(hide(rejected).replace(/\r\n?/g, '\n'));
  if (text.trim() === '') {
    return `${policy} rejected the request and gave no reason.`;
  }
  return cut(text);
}

function cut(text: string): string {
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}
