/**
 * The certificate of the service, issued and renewed by its replicas, without a key that could sign another.
 *
 * A change takes these steps, each by the first replica that gets there, and each resumable after a crash:
 * 1. The next certificate, with its own authority, is added to the Secret.
 * 2. That authority is added to `caBundle` of the webhook configurations, where the earlier one stays until it
 *    expires.
 * 3. A replica that has seen it there for some time, so that every API server has it, makes the next
 *    certificate the current one.
 * 4. Each replica uses it, again only after it has itself seen API servers trust it. One that lags is still
 *    trusted.
 * Each replica measures waiting alone. A replica whose clock differs from the API server's issues nothing:
 * the certificate that it finds expired may be one that others use.
 */
import { errorText } from '../../../base/errors.ts';
import type { Logger } from '../../../base/logger.ts';
import type { KubernetesOptions } from '../../options.ts';
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
  /** Interval of checks. Default: 30000. */
  readonly intervalMs?: number;
  /** How long API servers may take to trust a new authority. Default: 120000. */
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
/** Certificates are valid from 2.4 hours before they are issued, or earlier: two replicas may differ by twice this. */
const MAX_CLOCK_DIFFERENCE_MS = 3_600_000;
/** Other replicas change the Secret concurrently. */
const TRIES = 5;

export class CertificateRotator {
  readonly #client: ApiClient;
  readonly #options: CertificateOptions;
  readonly #logger: Logger;
  readonly #now: () => number;
  readonly #elapsed: () => number;
  readonly #secret: CertificateSecret;
  readonly #closing = new AbortController();
  /** By fingerprint: since when this replica has seen API servers trust the authority. */
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
   * Waits for the first certificate file, at the start. Retries if API servers do not answer. Resolves to
   * whether there is one; false only after `close`.
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

  /** Does all that is due now. @throws ApiError, ApiUnreachableError, Error of the file system */
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

  /** The Secret, with a usable certificate, and with the next one if it is due. */
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
        this.#checkClock(now);
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
        // API servers already trust a pending one.
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

  /** @throws Error if this machine and the API server disagree about the time */
  #checkClock(now: number): void {
    const { serverTime = now } = this.#client;
    if (Math.abs(now - serverTime) > MAX_CLOCK_DIFFERENCE_MS) {
      const [here, there] = [now, serverTime].map((time) => new Date(time).toISOString());
      throw new Error(
        `no certificate is made, because the clocks differ: here it is ${here}, on the API server ${there}`,
      );
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

  /** At once if there is no certificate; replaces another one only if API servers trust the new authority. */
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

  /** Logged once, until the problems change. */
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

const DAY_MS = 24 * 3_600_000;

/** For tests. */
export type CertificateTiming = Pick<Partial<CertificateOptions>, 'intervalMs' | 'settleMs'>;

/**
 * `undefined` = the service makes no certificate for itself; then nothing is loaded.
 * @throws ConfigurationError for mistakes in the kubeconfig, or if this is not a pod
 */
export async function configuredRotator(
  options: KubernetesOptions,
  logger: Logger,
  timing: CertificateTiming = {},
) {
  const { certificate_secret: secret, certificate_folder: folder, kubeconfig } = options;
  if (secret === undefined || folder === undefined) {
    return undefined;
  }
  const { createApiClient } = await import('../api/api-client.ts');
  const client = createApiClient({ kubeconfig, logger });
  const rotator = new CertificateRotator(
    client,
    {
      secret,
      folder,
      names: options.certificate_names,
      webhookConfigurations: options.webhook_configurations,
      lifeMs: options.certificate_days * DAY_MS,
      ...timing,
    },
    logger,
  );
  const close = async () => {
    await rotator.close();
    await client.close();
  };
  return { rotator, close };
}
