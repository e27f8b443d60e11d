/** Runs all checks against a policy service. */

import { jsonIn, valueAt } from '../base/yaml/tree.ts';
import { announcesBody } from '../http/call-error.ts';
import {
  askAgain,
  type Check,
  type CheckResult,
  type Finding,
  type Run,
  SOURCE,
  type Verdict,
} from './check.ts';
import { formChecks } from './checks/forms.ts';
import {
  authorChecks,
  commitChecks,
  endChecks,
  repetitionChecks,
  resourceTypeChecks,
} from './checks/leases.ts';
import { limitChecks } from './checks/limit.ts';
import { loadChecks, robustnessChecks } from './checks/load.ts';
import { NO_TOKEN, tokenChecks } from './checks/tokens.ts';
import { createLeases } from './leases.ts';
import { ENDPOINT_FLAGS, type Exchange, Target, type TargetOptions } from './target.ts';

/** Checks of all responses of the run; they send nothing. */
const wholeRunChecks: readonly Check[] = [
  {
    id: 'message-is-text',
    title: 'every 403 to a valid request has its reason as text in message',
    protocol:
      'The body of a 403 may be a JSON object whose field message is the reason. Without it the user sees a generic sentence, and a body that is not an object breaks earlier releases of Blazar.',
    sources: [SOURCE.blazarDocs, SOURCE.duties, SOURCE.filter],
    run: ({ target }) => {
      const rejections = target.exchanges.filter(
        ({ valid, operation, answer }) => valid && operation !== 'end' && answer?.status === 403,
      );
      return rejections.length === 0
        ? { skipped: 'no lease was rejected; pass one with --deny-lease' }
        : among(rejections, ({ answer }) => !hasMessage(answer?.body ?? ''), EXPECTED_MESSAGE);
    },
  },
  {
    id: 'no-redirect',
    title: 'no answer is a redirect',
    protocol:
      'Any status other than 204 and 403 is a failure. Redirects are not followed, because they would pass on the token.',
    sources: [SOURCE.filter, SOURCE.blazarDocs],
    run: ({ target }) => among(target.exchanges, isRedirect, 'no redirect'),
  },
  {
    id: 'no-content',
    title: 'a 204 has no body',
    protocol:
      'A 204 ends after its headers, and has neither Transfer-Encoding nor a Content-Length above 0. Blazar ignores a body; clients that keep connections open take it for the next answer, or refuse this one.',
    sources: [SOURCE.noContent, SOURCE.blazarDocs],
    run: ({ target }) =>
      target.exchanges.some(({ answer }) => answer?.status === 204)
        ? among(target.exchanges, hasContent, 'a 204 without a body: strict HTTP clients refuse this one')
        : { skipped: 'nothing was answered with 204; pass a lease with --allow-lease' },
  },
  {
    id: 'no-stack-trace',
    title: 'no answer shows a stack trace',
    protocol: 'Users and logs see the answers of a service; a stack trace reveals its code.',
    sources: [SOURCE.duties, SOURCE.filter],
    run: ({ target }) =>
      among(
        target.exchanges,
        ({ answer }) => stackTraceIn(answer?.body ?? ''),
        'an answer without a stack trace',
      ),
  },
  {
    id: 'no-token',
    title: 'no answer shows the token',
    protocol: 'Users and logs see the answers of a service; with the token, they can ask it themselves.',
    sources: [SOURCE.duties, SOURCE.filter],
    run: ({ target }) =>
      target.hasCredentials
        ? among(target.exchanges, (exchange) => target.showsToken(exchange), 'an answer without the token')
        : NO_TOKEN,
  },
];

/** All checks, in the order of execution. Checks of the whole run examine the exchanges of the others. */
export const CHECKS: readonly Check[] = [
  ...authorChecks,
  ...resourceTypeChecks,
  ...formChecks,
  ...endChecks,
  ...commitChecks,
  ...repetitionChecks,
  ...limitChecks,
  ...tokenChecks,
  ...robustnessChecks,
  ...loadChecks,
  ...wholeRunChecks,
];

export interface ConformanceOptions extends TargetOptions {
  /** The JSON of a `check-create` that must be allowed; valid for `parseCreateRequest`. */
  readonly allowLease?: string | undefined;
  /** The JSON of a `check-create` that must be rejected. */
  readonly denyLease?: string | undefined;
  /** The JSON of a `check-update` that must be rejected; valid for `parseUpdateRequest`. */
  readonly denyUpdate?: string | undefined;
  /** The JSON of a `commit-create` that must be rejected; valid for `parseCreateRequest`. */
  readonly denyCommit?: string | undefined;
  /** Leases start after this time. Default: now. */
  readonly now?: Date | undefined;
  /** Default 10,000. */
  readonly largeLeaseHosts?: number | undefined;
  /** Default: all. */
  readonly checks?: readonly Check[] | undefined;
  /** Called after each check with the number of completed checks and their total. */
  readonly progress?: ((done: number, all: number) => void) | undefined;
}

export interface ConformanceReport {
  readonly results: readonly CheckResult[];
  readonly requests: number;
  /** Leases that the service allowed and whose end could not be reported. */
  readonly notEnded: number;
}

/**
 * Runs the checks against a policy service, one after the other. After each check it reports the end of the
 * leases that the service allowed. Rejects with `UnreachableError` if the service cannot be reached.
 */
export async function runConformance(options: ConformanceOptions): Promise<ConformanceReport> {
  const { allowLease, denyLease, denyUpdate, denyCommit } = options;
  const { now = new Date(), largeLeaseHosts = 10_000, checks = CHECKS } = options;
  const target = new Target(options);
  const given = { allowLease, denyLease, denyUpdate, denyCommit };
  const run: Run = { target, leases: createLeases(now), ...given, largeLeaseHosts };
  const results: CheckResult[] = [];
  /** Why the remaining checks would prove nothing. */
  let vain: string | undefined;
  for (const check of checks) {
    const failed = results.some(({ check: { id }, result }) => id === check.variant && result === 'failed');
    const unproven = failed ? `${check.variant} has failed, and this differs in one thing only` : vain;
    const result = await runCheck(check, run, unproven);
    results.push(result);
    options.progress?.(results.length, checks.length);
    if (vain !== undefined) {
      continue;
    }
    // A service that does not respond may be gone: each further check would wait for its timeout.
    if (result.exchanges.some(({ answer }) => answer === undefined)) {
      const { answer } = await askAgain(run);
      vain = answer === undefined ? `the service has not answered since the check ${check.id}` : undefined;
      await target.settle();
    } else if (onlyRefused(target.exchanges)) {
      vain = `the service has answered every request with 401 since the check ${check.id}`;
    }
  }
  return { results, requests: target.exchanges.length, notEnded: target.notEnded };
}

async function runCheck(check: Check, run: Run, vain: string | undefined): Promise<CheckResult> {
  const { target } = run;
  const first = target.exchanges.length;
  const started = performance.now();
  const verdict = await verdictOf(check, run, vain);
  const sent = target.exchanges.slice(first);
  await target.settle();
  const findings = 'skipped' in verdict ? [] : verdict;
  return {
    check,
    result: 'skipped' in verdict ? 'skipped' : findings.length === 0 ? 'passed' : 'failed',
    reason: 'skipped' in verdict ? verdict.skipped : null,
    findings,
    exchanges: sent,
    milliseconds: Math.round(performance.now() - started),
  };
}

function verdictOf(check: Check, run: Run, vain: string | undefined): Promise<Verdict> | Verdict {
  const missing = check.needs?.find((operation) => !run.target.has(operation));
  if (missing !== undefined) {
    const flag = ENDPOINT_FLAGS[missing];
    const given = missing.startsWith('commit') ? `${flag} is not given` : `neither URL nor ${flag} is given`;
    return { skipped: `there is no endpoint: ${given}` };
  }
  if (vain !== undefined && !wholeRunChecks.includes(check)) {
    return { skipped: vain };
  }
  return check.run(run);
}

/** Every valid request got 401: the token is missing or wrong, which is reported once. */
function onlyRefused(exchanges: readonly Exchange[]): boolean {
  const valid = exchanges.filter((exchange) => exchange.valid);
  return valid.length > 0 && valid.every(({ answer }) => answer?.status === 401);
}

const EXPECTED_MESSAGE = 'a JSON object whose message is a text that is not empty';

function among(
  exchanges: readonly Exchange[],
  isWrong: (exchange: Exchange) => boolean,
  expected: string,
): Finding[] {
  return exchanges.filter(isWrong).map((exchange) => ({ expected, exchange }));
}

function isRedirect({ answer }: Exchange): boolean {
  return answer !== undefined && answer.status >= 300 && answer.status < 400;
}

function hasContent({ answer }: Exchange): boolean {
  return answer?.status === 204 && (answer.strayBytes || announcesBody(answer.headers));
}

function hasMessage(body: string): boolean {
  const message = valueAt(jsonIn(body), ['message']);
  // The replacement character stands for bytes that are not UTF-8.
  return typeof message === 'string' && message.trim() !== '' && !message.includes('\ufffd');
}

/** A line break, as text, inside JSON, or in HTML. */
const BREAK = String.raw`(?:\r?\n|\\r?\\n|\\n|<br\s*/?>)`;
const INDENT = String.raw`(?:[ \t]|\\t|&nbsp;)*`;

/** Formats of stack traces in the usual languages of services. Bounded, since the text is untrusted. */
const TRACES: readonly RegExp[] = [
  // Python
  /Traceback \(most recent call last\)/,
  /File \\?(?:"|&quot;|&#34;)[^"\n]{1,300}\\?(?:"|&quot;|&#34;), line \d+/,
  // JavaScript, Java, Kotlin, C#: `at place (file.js:1:2)`, `at package.Class.method(File.java:1)`, `at A.B() in file:line 1`
  new RegExp(
    `${BREAK}${INDENT}at [^\\n<]{0,300}(?:[.][a-z]\\w*:\\d|node:[\\w/]+:\\d|:line \\d|[(]Native Method[)])`,
    'i',
  ),
  // Go, Rust
  /goroutine \d+ \[[a-z ,]+\]:/,
  /thread '[^']*' panicked at/,
  // Ruby, PHP
  /\.rb:\d+:in [`']/,
  /#\d+ [^\n<]{0,300}\.php\(\d+\)/,
];

/** Whether a body contains a stack trace. */
export function stackTraceIn(body: string): boolean {
  return TRACES.some((trace) => trace.test(body));
}
