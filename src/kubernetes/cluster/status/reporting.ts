/** Everything that is written into a cluster: the status of policies, and events. */
import type { BindingRequest, PodRequest } from '../../admission/admission-review.ts';
import { EventSender, type Refusal, tellRefused } from './events.ts';
import { StatusWriter, type StatusWriterOptions } from './status-writer.ts';

export interface ReportingOptions
  extends Pick<StatusWriterOptions, 'client' | 'policies' | 'audit' | 'logger' | 'observer'> {
  /** The Lease that elects the writer of the status. */
  readonly lease: string;
}

/** Begins at once. */
export class Reporting {
  readonly #events: EventSender;
  readonly #writer: StatusWriter;

  constructor(options: ReportingOptions) {
    this.#events = new EventSender(options);
    this.#writer = new StatusWriter({ ...options, events: this.#events, election: { name: options.lease } });
    this.#writer.start();
  }

  get isLeader(): boolean {
    return this.#writer.isLeader;
  }

  auditChanged(audit: readonly string[]): void {
    this.#writer.auditChanged(audit);
  }

  /** Returns at once. */
  refused(request: PodRequest | BindingRequest, refusal: Refusal): void {
    tellRefused(this.#events, request, refusal);
  }

  /** What waits is dropped, and another replica may write. */
  async close(): Promise<void> {
    await Promise.all([this.#events.close(), this.#writer.close()]);
  }
}
