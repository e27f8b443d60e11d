/** What every protocol does with a request once it is read: its turn, its deadline, the decision, and what is kept of it. */
import type { Context as KoaContext } from 'koa';
import type { Deadline } from '../deadline.ts';
import type { DecisionLog } from '../decisions/log.ts';
import type { AskedTime, RecentDecisions } from '../decisions/recent.ts';
import { type DecidedRequest, type DecisionRecord, decisionRecord } from '../decisions/record.ts';
import type { CheckOptions } from '../enforcement/check-options.ts';
import type { UsageEnforcement } from '../enforcement/enforcement.ts';
import type { Decision, EndReport } from '../filter/verdict.ts';
import { leaseEnd, leaseStart } from '../lease/lease.ts';
import type { Metrics } from './metrics.ts';
import { stateOf } from './request-state.ts';

export type { DecidedRequest } from '../decisions/record.ts';

/** Puts one request to the filters. */
export type Ask = (enforcement: UsageEnforcement, call: CheckOptions) => Promise<Decision | EndReport>;

/** Where decisions are kept. */
export interface DecisionKeepers {
  readonly metrics: Metrics;
  readonly recent: RecentDecisions;
  readonly log: DecisionLog | undefined;
}

/**
 * Asks the filters of the generation that the request has found. Throws `OverloadedError` when there is no room, and
 * `InvalidRequestError` when it is no request: then there is no decision, and nothing is kept.
 */
export async function decide(
  ctx: KoaContext,
  request: DecidedRequest,
  ask: Ask,
  keepers: DecisionKeepers,
): Promise<Decision | EndReport> {
  const { generation, requestId, headers } = stateOf(ctx);
  const { enforcement, number } = generation;
  const started = performance.now();
  return generation.inTurn(async (deadline) => {
    // No protocol can take a changed lease: where a filter changes one, the answer says what to ask for.
    const decision = await ask(enforcement, { deadline, requestId, acceptsChanges: false });
    const milliseconds = performance.now() - started;
    const record = decisionRecord(decision, { requestId, generation: number, milliseconds, request });
    const room = keep(record, keepers, deadline, record.allowed ? undefined : askedTime(request));
    if (room !== undefined) {
      await room;
    }
    headers.push('X-Enforcement-Generation', String(number));
    return decision;
  });
}

/** Logs, counts and remembers a decision. A promise only where it is to wait for room in the log. */
export function keep(
  record: DecisionRecord,
  { metrics, recent, log }: DecisionKeepers,
  deadline: Deadline,
  asked?: AskedTime,
): Promise<void> | undefined {
  const counted = () => {
    metrics.decided(record);
    recent.add(record, asked);
  };
  const room = log?.write(record, deadline);
  if (room !== undefined) {
    return room.then(counted);
  }
  counted();
  return undefined;
}

/** An update says of its lease only what changes. */
function askedTime({ lease, current_lease, currentLease }: DecidedRequest): AskedTime | undefined {
  const current = current_lease ?? currentLease ?? {};
  const start = leaseStart(lease) ?? leaseStart(current);
  const end = leaseEnd(lease) ?? leaseEnd(current);
  return start === undefined || end === undefined ? undefined : { start, end };
}
