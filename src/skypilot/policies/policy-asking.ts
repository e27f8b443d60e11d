/** Asks one policy about a request: the answer counts, or is only logged. Never throws because of a policy. */
import { Deadline, inTime } from '../../base/deadline.ts';
import type { Logger } from '../../base/logger.ts';
import { inSpan } from '../../base/tracing.ts';
import { visibleLines } from '../../base/visible-text.ts';
import { type RuleOutcomes, rulesOfFailure } from '../../filter/verdict.ts';
import type { OpenLaunchLedger } from '../charging/open-launch-ledger.ts';
import type { ConfigValidation, Mismatch, Places } from '../config/config-validation.ts';
import type { ReceivedRequest } from '../request/wire.ts';
import { auditWarning, FAILED, type PolicyOutcome, type Refusal, type State } from '../review.ts';
import { SecretValues } from '../secrets.ts';
import { causeText, type Question, stackText } from './call-policy.ts';
import type { PolicyRunner } from './policy-runner.ts';
import type { RecordedChanges } from './recorded-changes.ts';

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
  readonly changes: RecordedChanges;
}

/** What a policy said, with what has become of the request. */
export interface Enforced {
  readonly report: PolicyOutcome;
  readonly refusal?: Refusal;
  readonly state: State;
  readonly invalid?: Mismatch;
}

interface Answered {
  readonly answer: State | Refusal;
  readonly rules: Pick<PolicyOutcome, 'rules'>;
}

export class PolicyAsking {
  readonly #validation: ConfigValidation;
  readonly #launches: OpenLaunchLedger | undefined;
  readonly #logger: Logger;

  constructor(validation: ConfigValidation, launches: OpenLaunchLedger | undefined, logger: Logger) {
    this.#validation = validation;
    this.#launches = launches;
    this.#logger = logger;
  }

  /** Its answer counts, unless it does not match SkyPilot's schema. */
  async enforce(runner: PolicyRunner, state: State, call: Call): Promise<Enforced> {
    const started = performance.now();
    const { answer, rules } = await this.#answerOf(runner, state, call, call.deadline);
    const report = { ...reportOf(runner, false, answer, state, performance.now() - started), ...rules };
    if ('message' in answer) {
      return { report, refusal: answer, state };
    }
    const invalid = report.changed ? this.#validation.ofAnswer(runner.name, state, answer) : undefined;
    if (invalid?.isEnforced !== true) {
      call.changes.add(report, state, answer);
    }
    if (invalid === undefined) {
      return { report, state: answer };
    }
    if (!invalid.isEnforced) {
      this.logMismatch(runner.name, invalid, call);
      return { report, state: answer, invalid };
    }
    this.logFailure(runner.name, new TypeError(invalid.message), answer, call);
    const failure = { ...report, ...FAILED, allowed: false, changed: false };
    return { report: failure, refusal: FAILED, state, invalid };
  }

  logMismatch(policy: string, { message, isNew }: Mismatch, call: Call): void {
    if (isNew) {
      const fields = { ...known(call), policy, user_id: call.request.user?.id, problem: message };
      this.#logger.warn(fields, 'a task or configuration of SkyPilot does not match its schema');
    }
  }

  /** Asks an audited policy, in half of the time that is left, and logs what it would have done. */
  async tryOut(runner: PolicyRunner, state: State, call: Call): Promise<PolicyOutcome> {
    const started = performance.now();
    const deadline = new Deadline(call.deadline.milliseconds / 2000);
    try {
      const { answer, rules } = await this.#answerOf(runner, state, call, deadline);
      const report = { ...reportOf(runner, true, answer, state, performance.now() - started), ...rules };
      if (!('message' in answer)) {
        call.changes.add(report, state, answer);
      }
      const warning = auditWarning(report);
      if (warning !== undefined) {
        this.#logger.warn({ ...known(call), policy: runner.name, user_id: call.request.user?.id }, warning);
      }
      return report;
    } finally {
      this.#launches?.adopt(deadline, call.deadline);
      deadline.end();
    }
  }

  #answerOf(runner: PolicyRunner, state: State, call: Call, deadline: Deadline): Promise<Answered> {
    return inSpan(
      spanOf(runner, call),
      () => this.#asked(runner, state, call, deadline),
      ({ answer }) => said(answer, state),
    );
  }

  async #asked(runner: PolicyRunner, state: State, call: Call, deadline: Deadline): Promise<Answered> {
    const { request } = call;
    try {
      deadline.throwIfOver();
      const asked = runner.ask(questionOf(state, request), deadline);
      const { rules, ...answer } = asked instanceof Promise ? await inTime(asked, deadline) : asked;
      deadline.throwIfOver();
      const said =
        'rejected' in answer
          ? { message: shownReason(runner.name, answer.rejected, hiding(state, request)), failed: false }
          : answer;
      return { answer: said, rules: rulesShown(runner.name, rules, hiding(state, request)) };
    } catch (thrown) {
      this.logFailure(runner.name, thrown, state, call);
      const rules = rulesShown(runner.name, rulesOfFailure(thrown), hiding(state, request));
      return { answer: FAILED, rules };
    }
  }

  logFailure(policy: string | null, thrown: unknown, state: State, call: Call): void {
    logFailure(this.#logger, { ...known(call), policy }, thrown, hiding(state, call.request));
  }
}

/** Their messages may quote the request, as the reason of a rejection does. */
function rulesShown(
  policy: string,
  rules: RuleOutcomes | undefined,
  hidden: ReturnType<typeof hiding>,
): Pick<PolicyOutcome, 'rules'> {
  return rules === undefined
    ? {}
    : {
        rules: rules.map((one) => ({
          ...one,
          message: one.message === null ? null : shownReason(policy, one.message, hidden),
        })),
      };
}

export function known({ requestId }: Call): { request_id?: string } {
  return requestId === undefined ? {} : { request_id: requestId };
}

/** On this side also for a policy in a thread, so that its wait is part of it. */
function spanOf({ name }: PolicyRunner, { request }: Call) {
  return {
    name: `policy ${name}`,
    attributes: {
      'blazar_enforcement.policy.name': name,
      'blazar_enforcement.policy.side': request.atClientSide ? 'client' : 'server',
    },
  };
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

function reportOf(
  { name: policy }: PolicyRunner,
  audit: boolean,
  answer: State | Refusal,
  state: State,
  milliseconds: number,
): PolicyOutcome {
  return 'message' in answer
    ? { policy, ...answer, allowed: false, changed: false, audit, milliseconds }
    : {
        ...{ policy, allowed: true, message: null, failed: false },
        ...{ changed: isChanged(answer, state), audit, milliseconds },
      };
}

/** A policy's answer shares what it has not changed. */
export function isChanged(answer: State, state: State): boolean {
  return answer.task !== state.task || answer.skypilotConfig !== state.skypilotConfig;
}

// Texts of policies, for the user and for the log: without secrets, and bounded.

/** Maximum length of a text that is searched for secrets, in characters. */
const MAX_SEARCHED = 16_000;
/** What is dropped at the end of a longer text: there may be a part of a secret, which is not recognized. */
const DROPPED = 4000;
/** Maximum length of a reason that a user reads, and of a cause in the log, in characters. */
const MAX_SHOWN = 8000;

type Hide = (text: string) => string;

/** Hides secrets in a policy's texts: those of the request and those that policies added. Collects them when first called. */
function hiding({ task, skypilotConfig }: State, request: ReceivedRequest): Hide {
  let secrets: SecretValues | undefined;
  return (text) => {
    secrets ??= SecretValues.of(request.task.value, request.skypilotConfig.value, task, skypilotConfig);
    const hidden = secrets.hideIn(text.slice(0, MAX_SEARCHED));
    return text.length > MAX_SEARCHED ? `${hidden.slice(0, Math.max(0, hidden.length - DROPPED))}…` : hidden;
  };
}

/** What the user reads: without secrets, and without characters that control a terminal. */
function shownReason(policy: string, rejected: string, hide: Hide): string {
  const text = visibleLines(hide(rejected).replace(/\r\n?/g, '\n'));
  if (text.trim() === '') {
    return `${policy} rejected the request and gave no reason.`;
  }
  return cut(text);
}

/** Logs the cause with its own causes and their stacks. */
function logFailure(
  logger: Logger,
  fields: { readonly request_id?: string; readonly policy: string | null },
  thrown: unknown,
  hide: Hide,
): void {
  const stack = stackText(thrown);
  logger.error(
    { ...fields, error: cut(hide(causeText(thrown))), ...(stack !== undefined && { stack: hide(stack) }) },
    'policy failed',
  );
}

function cut(text: string): string {
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}
