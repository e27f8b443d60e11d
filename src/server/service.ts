/** The policy service: its start, reloads, credentials and shutdown. */
import { setTimeout as pause } from 'node:timers/promises';
import { errorText, type Problem, stackOf } from '../base/errors.ts';
import type { ConfigSources } from '../config/sources.ts';
import { sectionOf } from '../enforcement/configuration.ts';
import { kubernetesSection } from '../kubernetes/options.ts';
import {
  credentialFiles,
  replaceTokens,
  rereadCredentials,
  type ServedProtocol,
  servedProtocols,
} from './authentication/authenticators.ts';
import type { Generation } from './configuration/generation.ts';
import type { Listener } from './listener/socket.ts';
import type { UncaughtKind } from './metrics/metrics.ts';
import { filesRead, openParts, type ServiceParts, type ServiceSettings } from './service/parts.ts';

export type { ServiceSettings };

/**
 * Checks the configuration, starts the service and listens.
 *
 * @throws ConfigurationError also if the address cannot be used; nothing is left open then
 */
export async function startService(sources: ConfigSources, settings: ServiceSettings = {}): Promise<Service> {
  let service: Service | undefined;
  const changes = {
    reload: () => void service?.reload(),
    credentialsChanged: () => void service?.credentialsChanged(),
    takeOver: (next: Generation) => service?.takeOver(next),
  };
  const opened: (() => Promise<void> | undefined)[] = [];
  try {
    const parts = await openParts(sources, settings, changes, opened);
    service = new Service(parts);
    service.begin();
    parts.watched.credentials.start();
    if (settings.watch) {
      parts.watched.configuration.start();
    }
    return service;
  } catch (thrown) {
    for (const close of opened.reverse()) {
      await close();
    }
    throw thrown;
  }
}

/** The part of `shutdown_grace` that is reserved for the filters and the decision log. */
const LAST_PART = 0.1;

export class Service {
  readonly #parts: ServiceParts;
  #closing: Promise<void> | undefined;
  /** `http://127.0.0.1:8642` */
  readonly url: string;
  /** The URL of health and metrics, if they have their own port. */
  readonly adminUrl: string | undefined;
  readonly warnings: readonly Problem[];
  /** The served protocols and their required credentials, as of the start. */
  readonly authenticators: readonly ServedProtocol[];
  /** Whether requests about leases need a token, as of the start. */
  readonly tokenForLeases: boolean;
  /** Whether the decision log is standard output: then nothing else may be written there. */
  readonly writesToStandardOutput: boolean;

  /** For parts that are open and answer. For `startService`. */
  constructor(parts: ServiceParts) {
    this.#parts = parts;
    const { configuration, options, authenticators, generations, listener } = parts;
    this.url = listener.url;
    this.adminUrl = parts.admin?.url;
    this.warnings = configuration.problems;
    this.authenticators = servedProtocols(authenticators, generations.current, listener.url);
    this.tokenForLeases = authenticators.blazar.tokens.required;
    this.writesToStandardOutput = options.decision_log === '-';
  }

  /** Starts background work: followers, this replica's heartbeat, cluster reports, certificate renewal. */
  begin(): void {
    this.#report(this.#parts.generations.current);
    this.#followAll();
    this.#parts.certificates?.rotator.start();
  }

  #followAll(): void {
    this.#parts.follower.start();
    this.#parts.skypilotFollower.start();
    this.#parts.heartbeat.start();
  }

  /** Reads the configuration and all files again. Resolves to whether the new configuration is in force. */
  async reload(): Promise<boolean> {
    const { sources, watched, log, generations, tlsOptions, stopping } = this.#parts;
    if (stopping.signal.aborted) {
      return false;
    }
    log?.reopen();
    const applied = await generations.reload();
    const { current, read } = generations;
    // The mistake may be in a file that only the new configuration names.
    await watched.configuration.watch([
      ...filesRead(sources, current.configuration),
      ...filesRead(sources, read),
    ]);
    const files = credentialFiles(current.configuration, tlsOptions);
    await watched.credentials.watch(files);
    if (files.length > 0) {
      this.#readCredentials();
    }
    return applied;
  }

  /** Reads token and certificate files again; and the configuration, if its mistakes may be in these. */
  async credentialsChanged(): Promise<void> {
    if (this.#readCredentials() && this.#parts.generations.problems.length > 0) {
      await this.reload();
    }
  }

  get #listeners(): readonly Listener[] {
    const { listener, admin } = this.#parts;
    return admin === undefined ? [listener] : [listener, admin];
  }

  #readCredentials(): boolean {
    const { generations, tlsOptions } = this.#parts;
    return rereadCredentials(generations.current.configuration, tlsOptions, {
      ...this.#parts,
      listeners: this.#listeners,
    });
  }

  takeOver(next: Generation): void {
    const { authenticators, watchdog } = this.#parts;
    next.decisions?.apply();
    replaceTokens(authenticators, next.tokens);
    authenticators.blazar.keystone = next.keystone?.authenticator;
    for (const listener of this.#listeners) {
      listener.replaceDeadline(next.options.deadline);
    }
    watchdog?.watch(next.options);
    this.#followAll();
    this.#report(next);
  }

  /** Reports policies and refusals to the cluster of the configuration. */
  #report({ configuration, kubernetes }: Generation): void {
    const options = sectionOf(configuration, kubernetesSection);
    this.#parts.reports.takeOver(kubernetes?.cluster?.cluster, options);
  }

  reportUncaught(kind: UncaughtKind, thrown: unknown): void {
    const { metrics, requestLogger } = this.#parts;
    metrics.uncaughtErrors.inc({ kind });
    requestLogger.error(
      { kind, error: errorText(thrown), stack: stackOf(thrown) },
      'uncaught error, most likely of a filter',
    );
  }

  /** Stops accepting, finishes requests under way, closes filters and logs, all within `shutdown_grace`. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const { stopping, watched, watchdog, generations, follower, reports } = this.#parts;
    const { log, stores, requestLogger } = this.#parts;
    void this.#parts.certificates?.close();
    this.#parts.heartbeat.close();
    stopping.abort();
    stores.stop();
    watched.credentials.close();
    watched.configuration.close();
    // A signal is handled late if a filter blocks the process: the time since then counts.
    const lateMs = watchdog?.heldForMs() ?? 0;
    const graceMs = Math.max(0, generations.current.options.shutdown_grace * 1000 - lateMs);
    watchdog?.endIn(graceMs);
    const forFiltersMs = (graceMs * LAST_PART) / 2;
    const forLogMs = forFiltersMs;
    const finished = Promise.all([
      ...this.#listeners.map((listener) => listener.close(graceMs - forFiltersMs - forLogMs)),
      follower.close(),
      this.#parts.skypilotFollower.close(),
      reports.close(),
    ]).then(() => generations.close());
    await waitAtMost(graceMs - forLogMs, finished);
    requestLogger.close();
    await Promise.all([log?.close(forLogMs), stores.close(forLogMs)]);
  }
}

async function waitAtMost(milliseconds: number, work: Promise<void>): Promise<void> {
  const late = new AbortController();
  await Promise.race([work, pause(milliseconds, undefined, { signal: late.signal }).catch(() => {})]);
  late.abort();
}
