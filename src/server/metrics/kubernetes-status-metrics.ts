/** What is counted of the status of scheduling policies, and of events about refusals. */
import { Counter, Gauge, type Registry } from 'prom-client';
import type {
  EventOutcome,
  StatusObserver,
  StatusOutcome,
} from '../../kubernetes/cluster/status/contract.ts';

const PREFIX = 'blazar_enforcement_kubernetes_';
const STATUS_OUTCOMES: readonly StatusOutcome[] = ['written', 'conflict', 'gone', 'refused', 'failed'];
const EVENT_OUTCOMES: readonly EventOutcome[] = ['sent', 'repeated', 'dropped', 'failed'];

export class KubernetesStatusMetrics implements StatusObserver {
  readonly #writes: Counter;
  readonly #events: Counter;

  /** `isLeader`: `undefined` = no replica with this configuration writes. */
  constructor(registry: Registry, isLeader: () => boolean | undefined) {
    const registers = [registry];
    this.#writes = new Counter({
      name: `${PREFIX}status_writes_total`,
      help: 'Attempts of this process to write the status of a scheduling policy, by outcome.',
      labelNames: ['outcome'],
      registers,
    });
    this.#events = new Counter({
      name: `${PREFIX}events_total`,
      help: 'Events of Kubernetes about refused pods and invalid policies, by outcome.',
      labelNames: ['outcome'],
      registers,
    });
    new Gauge({
      name: `${PREFIX}status_writer`,
      help: 'Whether this replica is the one that writes the status of scheduling policies: 1 or 0. Absent if none writes.',
      registers,
      collect() {
        const leads = isLeader();
        if (leads === undefined) {
          this.remove();
        } else {
          this.set(leads ? 1 : 0);
        }
      },
    });
    for (const outcome of STATUS_OUTCOMES) {
      this.#writes.inc({ outcome }, 0);
    }
    for (const outcome of EVENT_OUTCOMES) {
      this.#events.inc({ outcome }, 0);
    }
  }

  statusWritten(outcome: StatusOutcome): void {
    this.#writes.inc({ outcome });
  }

  event(outcome: EventOutcome): void {
    this.#events.inc({ outcome });
  }
}
