/** A check of the protocol, and shared parts of checks: sources, expectations, and requests. */
import { randomUUID } from 'node:crypto';
import {
  type Fields,
  isoText,
  type LeaseParts,
  type Leases,
  partsOf,
  resources,
  type TestLease,
} from './leases.ts';
import type { Exchange, Operation, Target } from './target.ts';

export interface Check {
  /** In kebab-case; stable across releases. */
  readonly id: string;
  /** What a passed check proves, as a sentence in the present tense. */
  readonly title: string;
  /** The requirement of the protocol. */
  readonly protocol: string;
  /** Sources of the requirement. */
  readonly sources: readonly string[];
  /** Skipped if the service lacks one of these endpoints. Default: any endpoint. */
  readonly needs?: readonly Operation[];
  /** The id of the check whose request differs in only one thing. Skipped if that check failed. */
  readonly variant?: string;
  /** Sends requests and returns the findings; empty = passed. */
  run(run: Run): Promise<Verdict> | Verdict;
}

export interface Run {
  readonly target: Target;
  readonly leases: Leases;
  /** Body of a `check-create` from the author. */
  readonly allowLease: string | undefined;
  readonly denyLease: string | undefined;
  /** Body of a `check-update` from the author. */
  readonly denyUpdate: string | undefined;
  /** Body of a `commit-create` from the author. */
  readonly denyCommit: string | undefined;
  /** Number of hosts in a large lease. */
  readonly largeLeaseHosts: number;
}

export interface Finding {
  readonly expected: string;
  readonly exchange: Exchange;
}

export type Verdict = readonly Finding[] | { readonly skipped: string };

export interface CheckResult {
  readonly check: Check;
  readonly result: 'passed' | 'failed' | 'skipped';
  readonly reason: string | null;
  /** Empty unless it failed. */
  readonly findings: readonly Finding[];
  /** All its exchanges, without the ends that are reported after it. */
  readonly exchanges: readonly Exchange[];
  readonly milliseconds: number;
}

/** Sources of the protocol. Pages are in this package; a test checks the anchors. */
export const SOURCE = {
  blazarDocs: 'Blazar docs, "Usage Enforcement", ExternalServiceFilter',
  blazarContext: 'Blazar, blazar/enforcement/enforcement.py, format_context',
  blazarUpdate: 'Blazar, blazar/manager/service.py, update_lease',
  blazarCreate: 'Blazar, blazar/manager/service.py, create_lease',
  endpoints: 'docs/reference/protocol.md#endpoints',
  requests: 'docs/reference/protocol.md#requests',
  unsaid: 'docs/reference/protocol.md#what-the-documentation-does-not-say',
  duties: 'docs/policy-service-author.md#what-you-have-to-do',
  keepInMind: 'docs/policy-service-author.md#what-to-keep-in-mind',
  filter: 'docs/policy-service-author.md#what-the-filter-makes-of-your-answer',
  clientErrors: 'RFC 9110, 15.5 and 15.6',
  noContent: 'RFC 9110, 8.6 and 15.3.5; RFC 9112, 6.1',
  persistence: 'RFC 9112, 9.3 and 9.6',
} as const;

/** For checks whose request differs from a plain new lease in one thing. */
export const VARIANT_OF_CREATE = { needs: ['create'], variant: 'create-physical-host' } as const;

// Expectations of responses: each returns the findings; empty = as expected.

export function expectVerdict(exchange: Exchange): Finding[] {
  return expectStatus(exchange, [204, 403], 'the status 204 or 403');
}

export function expectNoContent(exchange: Exchange): Finding[] {
  return expectStatus(exchange, [204], 'the status 204');
}

/** Expects one of these statuses; `expected` describes them. */
export function expectStatus(exchange: Exchange, statuses: readonly number[], expected: string): Finding[] {
  const { answer, headers } = exchange;
  if (answer !== undefined && statuses.includes(answer.status)) {
    return [];
  }
  if (answer?.status !== 401) {
    return [{ expected, exchange }];
  }
  const given = 'X-Auth-Token' in headers || 'Authorization' in headers;
  const why = given ? 'the service does not accept the token' : 'pass a token with --token or --bearer';
  return [{ expected: `${expected}; ${why}`, exchange }];
}

/** Expects 204 or 403; for the end of a lease 204, since it is a notification. */
export function expectAnswerTo(exchange: Exchange): Finding[] {
  return exchange.operation === 'end' ? expectNoContent(exchange) : expectVerdict(exchange);
}

/** Expects no success: Blazar takes only 204 as allowed, other clients any status from 200 to 299. */
export function expectRefusal(exchange: Exchange): Finding[] {
  const { answer } = exchange;
  return answer !== undefined && answer.status >= 300
    ? []
    : [{ expected: 'a status of 300 or more, such as 401', exchange }];
}

/** Expects an invalid request to cause no server error, and not to be allowed if it needs a verdict. */
export function expectNoServerError(exchange: Exchange): Finding[] {
  const { answer, operation } = exchange;
  const isYes = operation !== 'end' && answer?.status === 204;
  return answer !== undefined && answer.status < 500 && !isYes
    ? []
    : [
        {
          expected: `an answer with a status below 500${operation === 'end' ? '' : ', and not 204'}`,
          exchange,
        },
      ];
}

/** How to write a lease in another form. */
export interface Form {
  /** Completes "the status 204, as …". */
  readonly as: string;
  /** Whether it is sent with an `Idempotency-Key`. */
  readonly hasKey?: boolean;
  /** The lease in this form, in words too: `what` follows "a lease, ". `undefined` = it cannot be written so. */
  write(parts: LeaseParts): (LeaseParts & { readonly what: string }) | undefined;
}

/**
 * Expects the same status for a new lease in another form that means the same. A lease of the run is often
 * allowed, so those of the author are sent, too. Allowed leases are ended before, so that their cost does not
 * matter.
 */
export async function expectSameVerdict(run: Run, { as, hasKey, write }: Form): Promise<Finding[]> {
  const { target, leases } = run;
  const findings: Finding[] = [];
  for (const [what, usual] of leasesOf(run)) {
    const form = write(usual);
    if (form === undefined) {
      continue;
    }
    const before = await target.ask('create', leases.make(usual), what);
    await target.settle();
    const key = hasKey ? randomUUID() : undefined;
    const exchange = await target.ask('create', leases.make(form), `${what}, ${form.what}`, { key });
    const status = before.answer?.status;
    const unusable = expectVerdict(exchange);
    findings.push(...unusable);
    if (exchange.answer?.status === status || unusable.length > 0) {
      continue;
    }
    await target.settle();
    // A budget may be used up by now. Then the usual form gets the new status, too.
    const after = await target.ask('create', leases.make(usual), `${what}, once more`);
    if (after.answer?.status !== exchange.answer?.status) {
      findings.push({ expected: `the status ${status ?? '204 or 403'}, as ${as}`, exchange });
    }
  }
  return findings;
}

function leasesOf({ leases, allowLease, denyLease }: Run): [what: string, LeaseParts][] {
  const found: [string, LeaseParts][] = [['a lease', leases.parts]];
  for (const [flag, text] of Object.entries({ '--allow-lease': allowLease, '--deny-lease': denyLease })) {
    if (text !== undefined) {
      found.push([`the lease of ${flag}`, partsOf(text)]);
    }
  }
  return found;
}

/** A valid request, to see whether the service still responds. */
export function askAgain({ target, leases }: Pick<Run, 'target' | 'leases'>): Promise<Exchange> {
  const operation = target.has('create') ? 'create' : target.has('update') ? 'update' : 'end';
  return target.ask(operation, leases.make(), `${ASKED[operation]}: does the service still answer?`);
}

/**
 * Sends a valid request. No finding if the service gave such a request this status before: then other checks
 * report it.
 */
export async function expectAsBefore(run: Run): Promise<Finding[]> {
  const before = run.target.exchanges.filter(({ valid }) => valid);
  const exchange = await askAgain(run);
  const { operation, answer } = exchange;
  const isAsBefore = before.some(
    (one) => one.operation === operation && one.answer?.status === answer?.status,
  );
  return answer !== undefined && isAsBefore ? [] : expectAnswerTo(exchange);
}

export const ASKED: Readonly<Record<Operation, string>> = {
  create: 'a lease',
  update: 'an update',
  end: 'the end of a lease',
  commitCreate: 'the commit of a lease',
  commitUpdate: 'the commit of an update',
};

/** Makes a lease, and sends its create request if the service has the endpoint. For updates and ends. */
export async function createdLease(
  { target, leases }: Run,
  reservation = resources['physical:host'] as Fields,
): Promise<TestLease> {
  const lease = leases.make({ reservations: [reservation] });
  if (target.has('create')) {
    await target.ask('create', lease, `a lease of the type ${reservation.resource_type}`);
  }
  return lease;
}

export function dayLonger({ start, end }: Leases) {
  return { start_date: isoText(start), end_date: isoText(new Date(end.getTime() + DAY_MS)) };
}

const DAY_MS = 86_400_000;
