/** The policy service: everything wired, from the configuration to the socket, and back down again. */
import { setTimeout as pause } from 'node:timers/promises';
import type { ConfigSources } from '../config/sources.ts';
import { DecisionLog } from '../decisions/log.ts';
import { RecentDecisions } from '../decisions/recent.ts';
import { type Configuration, requireConfiguration, sectionOf } from '../enforcement/configuration.ts';
import { ConfigurationError, errorText, type Problem } from '../errors.ts';
import { kubernetesSection } from '../kubernetes/options.ts';
import { createLogger, type Logger } from '../logger.ts';
import { createApp } from './app.ts';
import { readTls, type TlsOptions } from './credentials.ts';
import { createDoors, DOOR_NAMES, DOORS, type DoorName, type Doors, replaceTokens } from './doors.ts';
import { type Generation, readDoorTokens } from './generation.ts';
import { Generations } from './generations.ts';
import { groundProblems } from './ground-checks.ts';
import { Listener } from './listener.ts';
import { Metrics, type UncaughtKind } from './metrics.ts';
import { type ServiceOptions, serviceSection } from './options.ts';
import { KUBERNETES_PATHS } from './own-paths.ts';
import { SECTIONS, tokenOptionsOf } from './sections.ts';
import { startedWith, startProblems } from './start-checks.ts';
import type { Watchdog } from './watchdog.ts';
import { WatchedFiles } from './watched-files.ts';

/** Of the time to shut down, so much is left to filters and logs when what is under way takes too long. */
const LAST_PART = 0.1;

/** A policy service that answers. */
export interface Service {
  /** `http://127.0.0.1:8642` */
  readonly url: string;
  /** What the operator should know of the configuration. */
  readonly warnings: readonly Problem[];
  /** Who may ask what, as it was at the start. */
  readonly doors: readonly OpenedDoor[];
  /** Whether those who ask for leases must send a token. */
  readonly tokenForLeases: boolean;
  /** Whether decisions are logged to standard output, where nothing else may be written then. */
  readonly writesToStandardOutput: boolean;
  /** Reads the configuration and all files anew. Resolves to whether the new configuration decides. */
  reload(): Promise<boolean>;
  /** Logs and counts what nobody has caught: a promise that was left to itself, or what was thrown where nobody waits. */
  reportUncaught(kind: UncaughtKind, thrown: unknown): void;
  /** Stops accepting, finishes what is under way, lets the filters go and writes the logs, within `shutdown_grace`. */
  close(): Promise<void>;
}

/** A protocol that is served. */
export interface OpenedDoor {
  readonly name: DoorName;
  /** `Blazar` */
  readonly title: string;
  /** Where it is asked. */
  readonly urls: readonly string[];
  /** What is asked for, all of it; empty = nothing. */
  readonly asks: readonly string[];
}

/** What `startService` can be told besides the configuration. */
export interface ServiceSettings {
  /** Default: what `log_level` and `log_format` say, on standard error. */
  readonly logger?: Logger;
  /** Whether a change of the configuration's files is a reload. Default false. */
  readonly watch?: boolean;
  /** How often it is looked whether a file has changed, in milliseconds. Default 1000. */
  readonly pollMs?: number;
  /** Is told for how long filters may hold the process, and sees which one does. Default: nobody looks. */
  readonly watchdog?: Pick<Watchdog, 'occupation' | 'watch' | 'heldForMs' | 'endIn'>;
}

/** Wires and checks everything, then listens. Throws `ConfigurationError`, also when the address can't be had. */
export async function startService(sources: ConfigSources, settings: ServiceSettings = {}): Promise<Service> {
  const { configFiles = [], configDirs = [] } = sources;
  const filesRead = ({ files, namedFiles }: Configuration) => [...files, ...namedFiles, ...configDirs];
  const configurationFiles = new WatchedFiles(() => void reload(), settings.pollMs);
  const credentialFiles = new WatchedFiles(() => void credentialsChanged(), settings.pollMs);
  // Each before it is read: what changes in between must not be missed.
  await configurationFiles.watch([...configFiles, ...configDirs]);
  const configuration = await requireConfiguration(sources, SECTIONS);
  const atStart = sectionOf(configuration, serviceSection);
  const started = startedWith(configuration);
  refuse([
    ...startProblems(configuration, started),
    ...(await groundProblems(configuration, { ask: false })),
  ]);
  await configurationFiles.watch(filesRead(configuration));
  const tlsOptions = tlsOptionsOf(configuration, atStart);
  await credentialFiles.watch(filesOf(configuration, tlsOptions));

  const logger = settings.logger ?? createLogger(atStart.log_level, atStart.log_format);
  const { watchdog } = settings;
  watchdog?.watch(atStart);
  let draining = false;

  const metrics: Metrics = new Metrics({
    underWay: () => generations.underWay,
    queued: () => generations.queued,
    generation: () => generations.current.number,
    configurationIsValid: () => generations.problems.length === 0,
  });
  const log = openDecisionLog(configuration, atStart, logger, metrics);
  const generations: Generations = await Generations.start(sources, configuration, started, {
    logger,
    httpObserver: metrics,
    ledgerObserver: metrics,
    occupation: watchdog?.occupation,
    reloaded: (outcome) => metrics.reloaded(outcome),
    swapped: (generation) => takeOver(generation),
  }).catch(async (thrown: unknown) => {
    await log?.close(0);
    throw thrown;
  });
  const doors = createDoors(generations.current.tokens, started.certificates);
  const app = createApp({
    generations,
    doors,
    keepers: { metrics, recent: new RecentDecisions(), log },
    isDraining: () => draining,
    logger,
  });

  let listener: Listener;
  try {
    const { host, port, deadline } = atStart;
    const tls = readTls(tlsOptions);
    const { everybody } = started.certificates;
    listener = await Listener.open(app.callback(), { host, port, deadline, tls, everybodyShows: everybody });
  } catch (thrown) {
    await generations.close();
    await log?.close(0);
    throw thrown;
  }

  const rereadTokens = () => replaceTokens(doors, readDoorTokens(generations.current.configuration));
  const replaceTls = () => {
    const tls = readTls(tlsOptions);
    if (tls !== undefined) {
      listener.replaceTls(tls);
    }
  };
  /** A mistake in one of the files leaves what there was, and keeps nobody from the others. */
  const readCredentials = () => {
    const mistakes = [rereadTokens, replaceTls].flatMap(mistakeOf);
    for (const error of mistakes) {
      logger.error({ error }, 'token and certificate files not read again: those before still count');
    }
    if (mistakes.length === 0) {
      logger.info('token and certificate files read again');
    }
    metrics.credentialsReloaded(mistakes.length === 0 ? 'applied' : 'refused');
    return mistakes.length === 0;
  };
  const credentialsChanged = async () => {
    // They may have been all that was wrong with the configuration.
    if (readCredentials() && generations.problems.length > 0) {
      await reload();
    }
  };
  const reload = async () => {
    if (draining) {
      return false;
    }
    log?.reopen();
    const applied = await generations.reload();
    const { current, read } = generations;
    // A mistake may be in a file that only the new one names.
    await configurationFiles.watch([...filesRead(current.configuration), ...filesRead(read)]);
    const files = filesOf(generations.current.configuration, tlsOptions);
    // Before they are read, as at the start.
    await credentialFiles.watch(files);
    if (files.length > 0) {
      readCredentials();
    }
    return applied;
  };
  const takeOver = (next: Generation) => {
    replaceTokens(doors, next.tokens);
    listener.replaceDeadline(next.options.deadline);
    watchdog?.watch(next.options);
  };
  credentialFiles.start();
  if (settings.watch) {
    configurationFiles.start();
  }

  let closing: Promise<void> | undefined;
  const close = async () => {
    draining = true;
    credentialFiles.close();
    configurationFiles.close();
    // Who was to stop while a filter held the process hears of it afterwards.
    const lateMs = watchdog?.heldForMs() ?? 0;
    const graceMs = Math.max(0, generations.current.options.shutdown_grace * 1000 - lateMs);
    watchdog?.endIn(graceMs);
    const forFiltersMs = (graceMs * LAST_PART) / 2;
    const forLogMs = forFiltersMs;
    const finished = listener.close(graceMs - forFiltersMs - forLogMs).then(() => generations.close());
    await waitAtMost(graceMs - forLogMs, finished);
    await log?.close(forLogMs);
  };

  return {
    url: listener.url,
    warnings: configuration.problems,
    tokenForLeases: doors.blazar.tokens.required,
    doors: openedDoors(doors, generations.current, listener.url),
    writesToStandardOutput: atStart.decision_log === '-',
    reload,
    reportUncaught(kind, thrown) {
      metrics.uncaught(kind);
      const stack = thrown instanceof Error ? thrown.stack : undefined;
      logger.error(
        { kind, error: errorText(thrown), stack },
        'nobody has caught an error, of a filter most likely',
      );
    },
    close() {
      closing ??= close();
      return closing;
    },
  };
}

function openDecisionLog(
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
    const { origin } =
      configuration.settings.find(
        ({ option: { section, name } }) => section === 'service' && name === 'decision_log',
      ) ?? {};
    const message = `expected a file that can be written, got ${destination} (${errorText(thrown)})`;
    throw new ConfigurationError([
      { severity: 'error', origin, section: 'service', option: 'decision_log', message },
    ]);
  }
}

/** What went wrong, for the log; nothing when nothing did. */
function mistakeOf(read: () => void): string[] {
  try {
    read();
    return [];
  } catch (thrown) {
    return [errorText(thrown)];
  }
}

async function waitAtMost(milliseconds: number, work: Promise<void>): Promise<void> {
  const late = new AbortController();
  await Promise.race([work, pause(milliseconds, undefined, { signal: late.signal }).catch(() => {})]);
  late.abort();
}

/** Tokens may have moved to another file since; certificates stay where they were at the start. */
function filesOf(now: Configuration, { tls_cert_file, tls_key_file, client_ca_file }: TlsOptions): string[] {
  const ofTokens = Object.values(tokenOptionsOf(now));
  return [
    ...ofTokens.map(({ tokens_file }) => tokens_file),
    tls_cert_file,
    tls_key_file,
    client_ca_file,
  ].filter((file) => file !== undefined);
}

/** Everybody's authorities, or those of API servers: both at once are refused. */
function tlsOptionsOf(configuration: Configuration, service: ServiceOptions): TlsOptions {
  const { client_ca_file: ofKubernetes } = sectionOf(configuration, kubernetesSection);
  return { ...service, client_ca_file: service.client_ca_file ?? ofKubernetes };
}

function refuse(problems: readonly Problem[]): void {
  if (problems.length > 0) {
    throw new ConfigurationError(problems);
  }
}

function openedDoors(doors: Doors, { skypilot, kubernetes }: Generation, url: string): OpenedDoor[] {
  const paths = {
    blazar: ['/v1/'],
    skypilot: skypilot.policies.isEmpty ? [] : [skypilot.options.path],
    kubernetes: kubernetes === undefined ? [] : Object.values(KUBERNETES_PATHS),
  };
  return DOOR_NAMES.filter((name) => paths[name].length > 0).map((name) => ({
    name,
    title: DOORS[name].title,
    urls: paths[name].map((path) => url + path),
    asks: doors[name].asks,
  }));
}
