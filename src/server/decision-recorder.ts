/** What happens to every decision, whatever its protocol: it is written to the decision log and to the store, counted, and shown in the console. */

import { withOrigin } from '../config/option-groups.ts';
import type { Deadline } from '../deadline.ts';
import { DecisionLog } from '../decisions/log.ts';
import { type AskedTime, RecentDecisions } from '../decisions/recent.ts';
import type { DecisionRecord } from '../decisions/record.ts';
import type { Configuration } from '../enforcement/configuration.ts';
import { ConfigurationError, errorText } from '../errors.ts';
import type { Logger } from '../logger.ts';
import type { Metrics } from './metrics.ts';
import type { ServiceOptions } from './options.ts';

export class DecisionRecorder {
  readonly #metrics: Metrics;
  readonly #log: DecisionLog | undefined;
  readonly #heard: (record: DecisionRecord, asked: AskedTime | undefined) => void;
  /** The latest decisions, for the console. */
  readonly recent = new RecentDecisions();

  /**
   * `log`: `undefined` = decisions are not logged. `heard`: called with each decision, for the store and for notifications; must not wait
   * or throw.
   */
  constructor(
    metrics: Metrics,
    log: DecisionLog | undefined,
    heard: (record: DecisionRecord, asked: AskedTime | undefined) => void = () => {},
  ) {
    this.#metrics = metrics;
    this.#log = log;
    this.#heard = heard;
  }

  /** Returns a promise only if the decision has to wait for room in the log (`decision_log_when_full = block`). */
  record(record: DecisionRecord, deadline: Deadline, asked?: AskedTime): Promise<void> | undefined {
    const room = this.#log?.write(record, deadline);
    if (room !== undefined) {
      return room.then(() => this.#count(record, asked));
    }
    this.#count(record, asked);
    return undefined;
  }

  #count(record: DecisionRecord, asked: AskedTime | undefined): void {
    this.#metrics.decided(record);
    this.recent.add(record, asked);
    this.#heard(record, asked);
  }
}

/** The log that the configuration names; `undefined` = none. @throws ConfigurationError if the file cannot be opened */
export function openDecisionLog(
  configuration: Configuration,
  { decision_log: destination, decision_log_when_full: whenFull }: ServiceOptions,
  logger: Logger,
  metrics: Metrics,
): DecisionLog | undefined {
  if (destination === undefined) {
    return undefined;
  }
  try {
    return new DecisionLog({ destination, whenFull }, logger, metrics);
  } catch (thrown) {
    const at = { section: 'service', option: 'decision_log' };
    const message = `expected a file that can be written, got ${destination} (${errorText(thrown)})`;
    throw new ConfigurationError([withOrigin({ severity: 'error', ...at, message }, configuration.settings)]);
  }
}
