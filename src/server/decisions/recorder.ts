/** Records every decision, of all protocols: in the decision log, the store, the metrics and the console. */

import { type Deadline, withinDeadline } from '../../base/deadline.ts';
import { errorText } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import { traceId } from '../../base/trace-context.ts';
import { isTraced } from '../../base/tracing.ts';
import { mistakesAt } from '../../config/option-groups.ts';
import type { DecidedRequest, RequestedLease } from '../../decisions/lease-record.ts';
import { DecisionLog, type DecisionLogObserver } from '../../decisions/log.ts';
import type { DecisionRecord } from '../../decisions/record.ts';
import type { Configuration } from '../../enforcement/configuration.ts';
import type { RequestNames } from '../../filter/verdict.ts';
import type { Generation } from '../configuration/generation.ts';
import type { ServiceOptions } from '../configuration/options.ts';
import type { DecisionMetrics } from '../metrics/request-metrics.ts';

/** Number of decisions that the console shows without a store. */
const RECENT = 50;
/** How long an event without a waiting caller may wait for room in the log, in seconds. */
const FOUND_SECONDS = 5;

/** Returns the member of a log record that holds the request. */
type RequestMember = (request: DecidedRequest, names: RequestNames | undefined) => string;

/** The store of decisions and the notifications of the current configuration. */
interface CurrentGeneration {
  readonly current: Pick<Generation, 'decisions' | 'enforcement'>;
}

export class DecisionRecorder {
  readonly #metrics: DecisionMetrics;
  readonly #log: DecisionLog | undefined;
  readonly #generations: CurrentGeneration | undefined;
  readonly #requestMember: RequestMember | undefined;
  readonly recent = new RecentDecisions();

  /**
   * `log`: `undefined` = decisions are not logged. `generations`: `undefined` = no store and no notifications.
   * `requestMember`: `undefined` = requests are not logged.
   */
  constructor(
    metrics: DecisionMetrics,
    log: DecisionLog | undefined,
    generations?: CurrentGeneration,
    requestMember?: RequestMember | undefined,
  ) {
    this.#metrics = metrics;
    this.#log = log;
    this.#generations = generations;
    this.#requestMember = log && requestMember;
  }

  /**
   * Returns a promise only if it must wait for room in the log (`decision_log_when_full = block`). Call it
   * before a decision that may record a lease, which would stay charged if its request were then refused.
   */
  room(deadline: Deadline): Promise<void> | undefined {
    return this.#log?.room(deadline);
  }

  /** Waits for room in the log, at most until `deadline`; `undefined` = `room` was waited for. */
  async record(
    decided: DecisionRecord,
    deadline: Deadline | undefined,
    asked?: RequestedLease,
    judged?: { readonly request: DecidedRequest; readonly names: RequestNames | undefined },
  ): Promise<void> {
    const trace_id = isTraced() ? traceId() : undefined;
    const record = trace_id === undefined ? decided : { ...decided, trace_id };
    const request = judged && this.#requestMember?.(judged.request, judged.names);
    await this.#log?.write(record, deadline, request);
    this.#metrics.decided(record);
    this.#tell(record, asked);
  }

  /**
   * Records an event that was found later, not a request: it is not counted. If decisions wait for room in
   * the log, so does it, for a while. Resolves to whether it was logged.
   */
  async found(record: DecisionRecord): Promise<boolean> {
    const isLogged = await withinDeadline(FOUND_SECONDS, async (deadline) => {
      await this.#log?.write(record, deadline);
      return true;
    }).catch(() => false);
    this.#tell(record, undefined);
    return isLogged;
  }

  #tell(record: DecisionRecord, asked: RequestedLease | undefined): void {
    this.recent.add(record, asked);
    const now = this.#generations?.current;
    now?.decisions?.queue.add(record, asked);
    // Only Blazar's operations: those of other protocols have a dot.
    if (!record.allowed && !record.operation.includes('.')) {
      now?.enforcement.notifications?.refused(record);
    }
  }
}

interface RecentDecision {
  readonly record: DecisionRecord;
  /** `undefined` = allowed, or not a lease. */
  readonly asked: RequestedLease | undefined;
}

export class RecentDecisions {
  readonly #kept: RecentDecision[] = [];
  readonly #listeners = new Set<(record: DecisionRecord) => void>();
  #next = 0;

  add(record: DecisionRecord, asked?: RequestedLease): void {
    this.#kept[this.#next] = { record, asked };
    this.#next = (this.#next + 1) % RECENT;
    for (const listen of this.#listeners) {
      listen(record);
    }
  }

  /** Calls `listener`, which must be quick, with each decision. Returns a function that removes it. */
  listen(listener: (record: DecisionRecord) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Newest first. */
  list(): RecentDecision[] {
    return [...this.#kept.slice(this.#next), ...this.#kept.slice(0, this.#next)].reverse();
  }
}

/** The configured log; `undefined` = none. @throws ConfigurationError if the file cannot be opened */
export function openDecisionLog(
  configuration: Configuration,
  { decision_log: destination, decision_log_when_full: whenFull }: ServiceOptions,
  logger: Logger,
  observer: DecisionLogObserver,
): DecisionLog | undefined {
  if (destination === undefined) {
    return undefined;
  }
  try {
    return new DecisionLog({ destination, whenFull }, logger, observer);
  } catch (thrown) {
    const at = { section: 'service', option: 'decision_log' };
    const message = `expected a file that can be written, got ${destination} (${errorText(thrown)})`;
    throw mistakesAt([{ severity: 'error', ...at, message }], configuration.settings);
  }
}

/** `undefined` = `decision_log_requests` is none. Imported only if needed: it detects all secrets. */
export async function requestMemberOf(options: ServiceOptions): Promise<RequestMember | undefined> {
  return options.decision_log === undefined || options.decision_log_requests === 'none'
    ? undefined
    : (await import('../../decisions/recorded-request.ts')).requestMember;
}
