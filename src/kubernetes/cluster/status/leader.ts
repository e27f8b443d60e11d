/** Elects one replica with a Lease, as Kubernetes' controllers do. */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { z } from 'zod';
import type { Logger } from '../../../base/logger.ts';
import { type ApiClient, ApiError, parsedAs, unlessMissing } from '../api/contract.ts';
import { boundedCall, CLOCK, type Clock } from '../api/timing.ts';
import { COMPONENT } from './conditions.ts';

/** In seconds. Source: the defaults of Kubernetes' own leader election. */
interface LeaderTiming {
  /** After this silence of the leader, another replica takes over. */
  readonly lease: number;
  /** Without a renewal for this long, the leader stops. Shorter than `lease`: calls in progress need time to end. */
  readonly renew: number;
  /** Time between two attempts. */
  readonly retry: number;
}

const TIMING: LeaderTiming = { lease: 15, renew: 10, retry: 2 };
/** In seconds: rights may be granted later. */
const FORBIDDEN_RETRY = 60;
/** For the release, in milliseconds. */
const RELEASE_MS = 2000;

export interface LeaderOptions {
  readonly client: ApiClient;
  readonly logger: Logger;
  /** Called when this replica becomes the leader. Never throws. */
  readonly onElected: () => void;
  /** Of the Lease. Default: `blazar-enforcement`. */
  readonly name?: string;
  /** Default: the client's, or `default`. */
  readonly namespace?: string;
  /** Different for each process. Default: the host name and a random UUID. */
  readonly identity?: string;
  readonly timing?: LeaderTiming;
  readonly clock?: Clock;
}

/**
 * Clocks of machines are never compared: a Lease is free if this process has seen it unchanged for its
 * duration. A frozen process notices when it continues, since `isLeader` reads the clock.
 */
export class Leader {
  readonly #options: Required<LeaderOptions>;
  readonly #closing = new AbortController();
  #leadsUntil = Number.NEGATIVE_INFINITY;
  /** The Lease as last seen, and since when. */
  #seen: { readonly version: string; readonly at: number } | undefined;
  #wasLeader = false;
  /** Whether the Lease may contain this replica's name. */
  #hasHeld = false;
  #problem: string | undefined;
  #running: Promise<void> | undefined;

  constructor(options: LeaderOptions) {
    this.#options = {
      name: COMPONENT,
      namespace: options.client.namespace ?? 'default',
      identity: `${hostname()}_${randomUUID()}`,
      timing: TIMING,
      clock: CLOCK,
      ...options,
    };
  }

  /** Check again before each write. */
  get isLeader(): boolean {
    return this.#options.clock.now() < this.#leadsUntil;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Releases the Lease, if the API server answers soon. */
  async close(): Promise<void> {
    this.#leadsUntil = Number.NEGATIVE_INFINITY;
    this.#closing.abort();
    await this.#running;
    if (this.#hasHeld) {
      await this.#release().catch(() => undefined);
    }
  }

  /** One attempt to take or renew the Lease. Never throws. Returns the seconds until the next one. */
  async attempt(): Promise<number> {
    // The time may have run out while this process was frozen.
    this.#tell();
    try {
      const until = await this.#acquire();
      if (!this.#closing.signal.aborted) {
        this.#leadsUntil = until ?? Number.NEGATIVE_INFINITY;
        this.#problem = undefined;
        this.#tell();
      }
      return this.#options.timing.retry;
    } catch (error) {
      this.#tell();
      return this.#failed(error);
    }
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      const seconds = await this.attempt();
      // Replicas that start together must not stay in step.
      const milliseconds = seconds * 1000 * (1 + Math.random() / 5);
      await this.#options.clock.sleep(milliseconds, signal);
    }
  }

  /** Until when this replica leads; `undefined` = another one does, or it is not yet known. */
  async #acquire(): Promise<number | undefined> {
    // Before the call: the others count from when they see the renewal, which is later.
    const until = this.#options.clock.now() + this.#options.timing.renew * 1000;
    const lease = await this.#read();
    if (lease === undefined) {
      this.#hasHeld = true;
      await this.#call('POST', this.#folder, newLease(this.#options));
      return until;
    }
    const { resourceVersion } = lease.metadata;
    if (this.#seen?.version !== resourceVersion) {
      this.#seen = { version: resourceVersion, at: this.#options.clock.now() };
    }
    const holder = holderOf(lease);
    const freeAt = this.#seen.at + durationOf(lease, this.#options.timing.lease);
    if (holder !== undefined && holder !== this.#options.identity && this.#options.clock.now() < freeAt) {
      return undefined;
    }
    this.#hasHeld = true;
    await this.#call('PUT', this.#path, heldLease(lease, this.#options));
    return until;
  }

  async #read(): Promise<Lease | undefined> {
    const answer = await this.#call('GET', this.#path).catch(unlessMissing);
    return answer === undefined ? undefined : parsedAs('Lease', leaseSchema, answer);
  }

  async #release(): Promise<void> {
    const signal = AbortSignal.timeout(RELEASE_MS);
    const answer = await this.#options.client.request({ method: 'GET', path: this.#path, signal });
    const lease = parsedAs('Lease', leaseSchema, answer);
    if (holderOf(lease) === this.#options.identity) {
      await this.#options.client.request({
        method: 'PUT',
        path: this.#path,
        // The next holder need not wait.
        body: withSpec(lease, { holderIdentity: '', leaseDurationSeconds: 1, acquireTime: undefined }),
        signal,
      });
    }
  }

  #call(method: 'GET' | 'POST' | 'PUT', path: string, body?: object): Promise<unknown> {
    const request = { method, path, ...(body !== undefined && { body }) };
    return boundedCall(this.#options.client, request, this.#closing.signal);
  }

  get #folder(): string {
    return `/apis/coordination.k8s.io/v1/namespaces/${encodeURIComponent(this.#options.namespace)}/leases`;
  }

  get #path(): string {
    return `${this.#folder}/${encodeURIComponent(this.#options.name)}`;
  }

  #tell(): void {
    const { isLeader } = this;
    if (isLeader === this.#wasLeader) {
      return;
    }
    this.#wasLeader = isLeader;
    const lease = `${this.#options.namespace}/${this.#options.name}`;
    if (isLeader) {
      this.#options.logger.info({ lease }, 'this replica writes the status of scheduling policies');
      this.#options.onElected();
    } else {
      this.#options.logger.info({ lease }, 'this replica no longer writes the status of scheduling policies');
    }
  }

  /**
   * A conflict: another one was faster. The policies' source reports an API server that is unavailable or
   * refuses our token.
   */
  #failed(error: unknown): number {
    if (!(error instanceof ApiError) || isPassing(error)) {
      this.#options.logger.debug({ error }, 'no attempt to lead succeeded');
      return this.#options.timing.retry;
    }
    const { status, reason, message } = error;
    if (this.#problem !== reason) {
      this.#problem = reason;
      this.#options.logger.warn(
        { lease: `${this.#options.namespace}/${this.#options.name}`, status, error: message },
        'this replica cannot write the status of scheduling policies: it may not use the lease that elects the writer',
      );
    }
    return FORBIDDEN_RETRY;
  }
}

/** Whether to retry soon. */
function isPassing({ status }: ApiError): boolean {
  return status === 409 || status === 429 || status === 401 || status >= 500;
}

/** The Lease for electing a leader. Source: Kubernetes API, coordination.k8s.io/v1. */
const leaseSchema = z.looseObject({
  metadata: z.looseObject({ resourceVersion: z.string().min(1) }),
  spec: z
    .looseObject({
      holderIdentity: z.string().nullish(),
      leaseDurationSeconds: z.number().nullish(),
      acquireTime: z.string().nullish(),
      leaseTransitions: z.number().nullish(),
    })
    .nullish(),
});

/** With all further members, which are written back. */
type Lease = z.infer<typeof leaseSchema>;

/**
 * A client that may change the Lease can hold it anyway; but a typing error must not stop all replicas for
 * years. In seconds.
 */
const LONGEST = 300;

/** `undefined` = none: it was released. */
function holderOf({ spec }: Lease): string | undefined {
  return spec?.holderIdentity || undefined;
}

/** How long its holder may be silent, in milliseconds. */
function durationOf({ spec }: Lease, defaultSeconds: number): number {
  const seconds = spec?.leaseDurationSeconds ?? defaultSeconds;
  return Math.min(Math.max(seconds, 1), LONGEST) * 1000;
}

function newLease({ name, namespace, ...options }: Required<LeaderOptions>): object {
  const metadata = { name, namespace, resourceVersion: '' };
  const { spec } = heldLease({ metadata, spec: { leaseTransitions: -1 } }, options);
  return { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name, namespace }, spec };
}

/** Taken or renewed. With `resourceVersion`: the API server refuses if it has changed since. */
function heldLease(lease: Lease, { identity, timing }: Pick<Required<LeaderOptions>, 'identity' | 'timing'>) {
  const isRenewal = holderOf(lease) === identity;
  const { acquireTime, leaseTransitions } = lease.spec ?? {};
  return withSpec(lease, {
    holderIdentity: identity,
    leaseDurationSeconds: timing.lease,
    leaseTransitions: (leaseTransitions ?? 0) + (isRenewal ? 0 : 1),
    acquireTime: isRenewal ? acquireTime : undefined,
  });
}

/**
 * Renewed now, and acquired now if there is no `acquireTime`: for display only; no replica compares it with
 * its own clock.
 */
function withSpec(lease: Lease, changes: NonNullable<Lease['spec']>) {
  const now = new Date().toISOString().replace('Z', '000Z');
  return {
    ...lease,
    spec: { ...lease.spec, ...changes, renewTime: now, acquireTime: changes.acquireTime ?? now },
  };
}
