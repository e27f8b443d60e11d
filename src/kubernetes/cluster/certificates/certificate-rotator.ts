/**
 * The certificate of the service, made and renewed by its replicas, without anything that could sign another.
 *
 * A change takes these steps, each by whichever replica is first, and each found again in the cluster after a crash:
 * 1. The next certificate, of an authority of its own, goes into the Secret beside the current one.
 * 2. That authority is added to `caBundle` of the webhook configurations, where the one before stays until it expires.
 * 3. A replica that has seen it there for some time, so that every API server has heard of it, makes the next certificate the current one.
 * 4. Each replica serves with it, again only after it has itself seen API servers trust it. One that lags is still trusted.
 * No step depends on the clocks of two machines being alike: waiting is measured by each replica alone.
 */
import { errorText } from '../../../base/errors.ts';
import type { Logger } from '../../../base/logger.ts';
import { type ApiClient, ApiError } from '../api/contract.ts';
import { Backoff, CLOCK } from '../api/timing.ts';
import {
  certificatesIn,
  type HeldCertificate,
  isDue,
  issueCertificate,
  isValid,
  serveCertificate,
  servedCertificate,
} from './certificate.ts';
import { CertificateSecret, type SecretState, trustAuthorities } from './certificate-objects.ts';

export interface CertificateOptions {
  readonly secret: string;
  readonly folder: string;
  readonly names: readonly string[];
  readonly webhookConfigurations: readonly string[];
  readonly lifeMs: number;
  /** How often to look. Default: 30000. */
  readonly intervalMs?: number;
  /** How long API servers get to hear of an authority. Default: 120000. */
  readonly settleMs?: number;
}

interface CertificateClocks {
  /** Milliseconds since 1970. Default: `Date.now` */
  readonly now?: () => number;
  /** Milliseconds that never jump. Default: `performance.now` */
  readonly elapsed?: () => number;
}

const INTERVAL_MS = 30_000;
const SETTLE_MS = 120_000;
/** Other replicas change the Secret at the same time. */
const TRIES = 5;

export class CertificateRotator {
  readonly #client: ApiClient;
  readonly #options: CertificateOptions;
  readonly #logger: Logger;
  readonly #now: () => number;
  readonly #elapsed: () => number;
  readonly #secret: CertificateSecret;
  readonly #closing = new AbortController();
  /** Since when this replica has seen API servers told of an authority, by its fingerprint. */
  #trustedSince = new Map<string, number>();
  #reported = '';
  #running: Promise<void> | undefined;

  constructor(
    client: ApiClient,
    options: CertificateOptions,
    logger: Logger,
    { now = Date.now, elapsed = () => performance.now() }: CertificateClocks = {},
  ) {
    this.#client = client;
    this.#options = options;
    this.#logger = logger;
    this.#now = now;
    this.#elapsed = elapsed;
    this.#secret = new CertificateSecret(client, options.secret, options.names);
  }

  start(): void {
    this.#running ??= this.#run();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  /**
   * Until there is a file to serve with: for the first start. Waits for API servers that do not answer. Resolves to whether there is one, which
   * only `close` prevents.
   */
  async prepare(): Promise<boolean> {
    const backoff = new Backoff(1000, 15_000);
    while (!this.#closing.signal.aborted) {
      if (await this.#look()) {
        return true;
      }
      await backoff.wait(this.#closing.signal);
    }
    return false;
  }

  async #run(): Promise<void> {
    const { intervalMs = INTERVAL_MS } = this.#options;
    while (!this.#closing.signal.aborted) {
      await this.#look();
      // Not all replicas at once.
      await CLOCK.sleep(intervalMs * (0.75 + Math.random() / 2), this.#closing.signal);
    }
  }

  async #look(): Promise<boolean> {
    try {
      await this.step();
      return true;
    } catch (thrown) {
      this.#report([errorText(thrown)]);
      return false;
    }
  }

  /** Everything that is due now. @throws ApiError, ApiUnreachableError, Error of the file system */
  async step(): Promise<void> {
    let state = await this.#agreed();
    const problems = await this.#spread(state);
    if (state.next !== undefined && this.#isSettled(state.next)) {
      state = await this.#promoted(state, state.next);
    }
    if (typeof state.current !== 'string') {
      this.#serve(state.current);
    }
    this.#report(problems);
  }

  /** The Secret, with a certificate that can be used, and with the next one when it is time. */
  async #agreed(): Promise<SecretState> {
    const { names, lifeMs, secret } = this.#options;
    for (let left = TRIES; ; left -= 1) {
      try {
        const now = this.#now();
        const state = await this.#secret.read(now);
        const { current, next } = state;
        const isUsable = typeof current !== 'string';
        if (isUsable && (next !== undefined || !isDue(current, now))) {
          return state;
        }
        const issued = await issueCertificate({ names, lifeMs }, now);
        const authorities = [...this.#authoritiesOf(state).map(String), issued.authority];
        if (isUsable) {
          const changed = await this.#secret.write(state, { current, next: issued, authorities }, now);
          this.#logger.info(
            { secret },
            'the next certificate is made: API servers are told of its authority',
          );
          return changed;
        }
        if (!state.isEmpty) {
          this.#logger.error(
            { secret, reason: current },
            'the certificate in the Secret cannot be used: a new one is made',
          );
        }
        // One that waits, API servers know already.
        const changed = await this.#secret.write(state, { current: next ?? issued, authorities }, now);
        this.#logger.info({ secret }, 'a certificate is made');
        return changed;
      } catch (thrown) {
        const wasFaster = thrown instanceof ApiError && thrown.status === 409;
        if (!wasFaster || left === 1) {
          throw thrown;
        }
      }
    }
  }

  #authoritiesOf({ authorities }: SecretState) {
    return certificatesIn(authorities).filter((one) => one.ca && isValid(one, this.#now()));
  }

  async #spread(state: SecretState): Promise<readonly string[]> {
    const authorities = this.#authoritiesOf(state);
    const { webhookConfigurations } = this.#options;
    const { trusted, problems } = await trustAuthorities(
      this.#client,
      webhookConfigurations,
      authorities,
      this.#now(),
    );
    const before = this.#trustedSince;
    const since = authorities.map(
      ({ fingerprint256: id }) => [id, before.get(id) ?? this.#elapsed()] as const,
    );
    this.#trustedSince = new Map(trusted ? since : []);
    return problems;
  }

  #isSettled({ authority }: HeldCertificate): boolean {
    const since = this.#trustedSince.get(authority.fingerprint256);
    return since !== undefined && this.#elapsed() - since >= (this.#options.settleMs ?? SETTLE_MS);
  }

  async #promoted(state: SecretState, next: HeldCertificate): Promise<SecretState> {
    try {
      const authorities = this.#authoritiesOf(state).map(String);
      const changed = await this.#secret.write(state, { current: next, authorities }, this.#now());
      this.#logger.info(
        { certificate: next.fingerprint },
        'API servers trust the next certificate: it takes over',
      );
      return changed;
    } catch (thrown) {
      if (thrown instanceof ApiError && thrown.status === 409) {
        return state;
      }
      throw thrown;
    }
  }

  /** Without a certificate at once; instead of another one only if API servers have heard of its authority. */
  #serve(current: HeldCertificate): void {
    const served = servedCertificate(this.#options.folder);
    const isOver = served === undefined || served.validTo <= this.#now();
    if (served?.fingerprint === current.fingerprint || !(isOver || this.#isSettled(current))) {
      return;
    }
    serveCertificate(this.#options.folder, current);
    const validTo = new Date(current.validTo).toISOString();
    this.#logger.info({ certificate: current.fingerprint, validTo }, 'the service has another certificate');
  }

  /** Once, until something else is wrong. */
  #report(problems: readonly string[]): void {
    const text = problems.join('; ');
    if (text !== '' && text !== this.#reported) {
      const isServed = servedCertificate(this.#options.folder) !== undefined;
      this.#logger.warn(
        { problems },
        isServed
          ? 'not everything about the certificate of the service succeeds: tried again, the one in use stays'
          : 'the service has no certificate yet: tried again until there is one',
      );
    }
    this.#reported = text;
  }
}
