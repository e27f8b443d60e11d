/** The policy service: everything is wired and checked before the port opens. */
import { setTimeout as pause } from 'node:timers/promises';
import type { ConfigSources } from '../config/sources.ts';
import { type Configuration, requireConfiguration, sectionOf } from '../enforcement/configuration.ts';
import { createSharedServices } from '../enforcement/services.ts';
import { ConfigurationError, errorText, type Problem } from '../errors.ts';
import { type ConfiguredKeeper, configuredKeeper } from '../kubernetes/certificates/configured-keeper.ts';
import { kubernetesSection } from '../kubernetes/options.ts';
import { createLogger, type Logger } from '../logger.ts';
import { createApp } from './app.ts';
import { BudgetGauge } from './budget-gauge.ts';
import {
  applyCredentials,
  credentialFiles,
  digestOfCredentials,
  findCredentials,
  tlsOptionsOf,
} from './credential-files.ts';
import { readTls, type TlsOptions } from './credentials.ts';
import {
  DecisionRecorder,
  type Heard,
  openDecisionLog,
  requestMemberOf,
  type WrittenLog,
} from './decision-recorder.ts';
import { DecisionStores } from './decision-stores.ts';
import { createDoors, type Doors, replaceTokens } from './doors.ts';
import { Follower } from './follower.ts';
import type { Generation } from './generation.ts';
import { Generations } from './generations.ts';
import { groundProblems } from './ground-checks.ts';
import { KeystoneGates } from './keystone-gates.ts';
import { KubernetesReports } from './kubernetes-reports.ts';
import { KubernetesSources } from './kubernetes-sources.ts';
import { Listener } from './listener.ts';
import { Metrics, type UncaughtKind } from './metrics.ts';
import { type OpenedDoor, openedDoors } from './opened-doors.ts';
import { type ServiceOptions, serviceSection } from './options.ts';
import { OutboxGauge } from './outbox-gauge.ts';
import { announceRefusal } from './refusal-notices.ts';
import { type RefusedRequest, RefusedRequests } from './refused-requests.ts';
import { SECTIONS } from './sections.ts';
import { SkypilotFollower } from './skypilot-follower.ts';
import { type Started, startedWith, startProblems } from './start-checks.ts';
import type { Watchdog } from './watchdog.ts';
import { WatchedFiles } from './watched-files.ts';
import { openSentLog, type ServicePart, startPart } from './workers/load-part.ts';
import type { Topic } from './workers/messages.ts';
import { workerCount } from './workers/share.ts';
import type { WorkerLink } from './workers/worker-link.ts';

/** The part of `shutdown_grace` that is kept for the filters and the decision log, when requests take longer. */
const LAST_PART = 0.1;

export interface ServiceSettings {
  /** Default: standard error, as `log_level` and `log_format` say. */
  readonly logger?: Logger;
  /** Whether to reload when a configuration file changes. Default false. */
  readonly watch?: boolean;
  /** How often to look for changed files, in milliseconds. Default 1000. */
  readonly pollMs?: number;
  /** Watches for filters that hold the process. Default: none. */
  readonly watchdog?: Pick<Watchdog, 'occupation' | 'watch' | 'heldForMs' | 'endIn'>;
  /** Of a service of several processes: the one that this process is. Default: this process is the whole service. */
  readonly worker?: WorkerLink | undefined;
}

/** A service whose configuration has no mistakes. */
export interface PreparedService {
  readonly configuration: Configuration;
  readonly options: ServiceOptions;
  /** Starts it in this process, and listens. @throws ConfigurationError also if the address cannot be used */
  start(): Promise<Service>;
}

/** Checks the configuration, starts the service and listens. @throws ConfigurationError also if the address cannot be used */
export async function startService(sources: ConfigSources, settings: ServiceSettings = {}): Promise<Service> {
  const prepared = await prepareService(sources, settings);
  if (settings.worker === undefined && workerCount(prepared.options.workers) > 1) {
    const message = 'expected 1: only the command serve starts several processes';
    throw new ConfigurationError([{ severity: 'error', section: 'service', option: 'workers', message }]);
  }
  return prepared.start();
}

/** Checks the configuration. @throws ConfigurationError */
export async function prepareService(
  sources: ConfigSources,
  settings: ServiceSettings = {},
): Promise<PreparedService> {
  const { worker, pollMs } = settings;
  let service: Service | undefined;
  const watched = {
    configuration: new WatchedFiles(
      () => void (worker === undefined ? service?.reload() : worker.changed('configuration')),
      pollMs,
    ),
    credentials: new WatchedFiles(
      () => void (worker === undefined ? service?.credentialsChanged() : worker.changed('credentials')),
      pollMs,
    ),
  };
  const checked = await checkedConfiguration(sources, watched, settings);
  const start = async () => {
    service = await Service.open(sources, settings, watched, checked);
    watched.credentials.start();
    if (settings.watch) {
      watched.configuration.start();
    }
    return service;
  };
  return { configuration: checked.configuration, options: checked.options, start };
}

interface Watched {
  readonly configuration: WatchedFiles;
  readonly credentials: WatchedFiles;
}

/** A configuration that the service can start with. */
interface CheckedConfiguration {
  readonly configuration: Configuration;
  readonly options: ServiceOptions;
  readonly tlsOptions: TlsOptions;
  readonly started: Started;
}

/** Watches each file before it is read for the last time, so that no change in between is missed. */
async function checkedConfiguration(
  sources: ConfigSources,
  watched: Watched,
  { watch: readAgain = false, worker }: ServiceSettings,
): Promise<CheckedConfiguration> {
  const { configFiles = [], configDirs = [] } = sources;
  await watched.configuration.watch([...configFiles, ...configDirs]);
  let configuration = await requireConfiguration(sources, SECTIONS);
  while ((await watched.configuration.watch(filesRead(sources, configuration))) && readAgain) {
    configuration = await requireConfiguration(sources, SECTIONS);
  }
  while (worker !== undefined && !(await worker.files.areRead(filesRead(sources, configuration)))) {
    configuration = await requireConfiguration(sources, SECTIONS);
  }
  const options = sectionOf(configuration, serviceSection);
  const started = startedWith(configuration);
  const problems = [
    ...startProblems(configuration, started),
    ...(await groundProblems(configuration, { ask: false })),
  ];
  if (problems.length > 0) {
    throw new ConfigurationError(problems);
  }
  const tlsOptions = tlsOptionsOf(configuration, options);
  await watched.credentials.watch(credentialFiles(configuration, tlsOptions));
  return { configuration, options, tlsOptions, started };
}

function filesRead({ configDirs = [] }: ConfigSources, { files, namedFiles }: Configuration): string[] {
  return [...files, ...namedFiles, ...configDirs];
}

/** What a service consists of while it runs. */
interface Parts extends CheckedConfiguration {
  readonly sources: ConfigSources;
  readonly watched: Watched;
  readonly watchdog: ServiceSettings['watchdog'];
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly log: WrittenLog | undefined;
  readonly stores: DecisionStores;
  readonly refusedRequests: RefusedRequests;
  readonly generations: Generations;
  readonly follower: Follower;
  readonly skypilotFollower: SkypilotFollower;
  readonly reports: KubernetesReports;
  readonly certificates: ConfiguredKeeper | undefined;
  readonly doors: Doors;
  readonly listener: Listener;
  readonly state: State;
  readonly part: ServicePart | undefined;
  readonly worker: WorkerLink | undefined;
}

interface State {
  isDraining: boolean;
  readonly stopping: AbortController;
}

/** A policy service that answers. */
export class Service {
  readonly #parts: Parts;
  #closing: Promise<void> | undefined;
  /** `http://127.0.0.1:8642` */
  readonly url: string;
  /** Warnings about the configuration, for the operator. */
  readonly warnings: readonly Problem[];
  /** The protocols that are served, and what they ask for, as of the start. */
  readonly doors: readonly OpenedDoor[];
  /** Whether requests about leases need a token, as of the start. */
  readonly tokenForLeases: boolean;
  /** Whether the decision log is standard output, to which nothing else may be written then. */
  readonly writesToStandardOutput: boolean;

  private constructor(parts: Parts) {
    this.#parts = parts;
    const { configuration, options, doors, generations, listener } = parts;
    this.url = listener.url;
    this.warnings = configuration.problems;
    this.doors = openedDoors(doors, generations.current, listener.url);
    this.tokenForLeases = doors.blazar.tokens.required;
    this.writesToStandardOutput = options.decision_log === '-';
  }

  /** Opens the decision log, the filters and the port, in this order. For `startService`. */
  static async open(
    sources: ConfigSources,
    settings: ServiceSettings,
    watched: Watched,
    checked: CheckedConfiguration,
  ): Promise<Service> {
    const { configuration, options, tlsOptions, started } = checked;
    const { watchdog, worker } = settings;
    const always = worker === undefined ? null : { worker: worker.place.number };
    const { logger = createLogger(options.log_level, options.log_format, always) } = settings;
    const isSingle = () => worker === undefined || worker.isDesk;
    watchdog?.watch(options);
    const state: State = { isDraining: false, stopping: new AbortController() };
    const budgetGauge = new BudgetGauge();
    const outboxGauge = new OutboxGauge();
    const metrics: Metrics = new Metrics({
      underWay: () => generations.underWay,
      queued: () => generations.queued,
      generation: () => generations.current.number,
      configurationIsValid: () => generations.problems.length === 0,
      budgets: () => {
        const { ledger, options: now } = generations.current;
        return isSingle() ? budgetGauge.read(ledger, now.metrics_budgets) : Promise.resolve(undefined);
      },
      tokens: () => gates.sizes,
      decisionsWaiting: () => stores.waiting,
      outbox: () =>
        isSingle() ? outboxGauge.read(generations.current.enforcement.outbox) : Promise.resolve(undefined),
      cluster: () => generations.current.kubernetes?.cluster?.followed,
      writesStatus: () => reports.isLeader,
      ...(worker !== undefined && { whole: () => worker.ask('metrics') }),
    });
    metrics.breakers = worker?.breakers;
    const gates = new KeystoneGates(createSharedServices({ logger, httpObserver: metrics }), metrics.tokens);
    const stores = new DecisionStores(logger, metrics.decisionStore);
    const reports = new KubernetesReports({ logger, observer: metrics.kubernetesStatus });
    const clusters = new KubernetesSources({ logger, metrics: metrics.kubernetes });
    const requestMember = await requestMemberOf(options);
    const log =
      worker === undefined
        ? openDecisionLog(configuration, options, logger, metrics)
        : await openSentLog(options, logger, metrics);
    const generations: Generations = await Generations.start(sources, configuration, started, {
      logger,
      ...{ gates, stores, clusters },
      httpObserver: metrics,
      ledgerObserver: metrics,
      namesObserver: metrics,
      occupation: watchdog?.occupation,
      reloaded: (outcome) => metrics.reloaded(outcome),
      swapped: (generation) => service.#takeOver(generation),
      isReadTooEarly: async (read) =>
        (settings.watch === true &&
          (await watched.configuration.watch([
            ...filesRead(sources, generations.current.configuration),
            ...filesRead(sources, read),
          ]))) ||
        (worker !== undefined && !(await worker.files.areRead(filesRead(sources, read)))),
      ...(worker !== undefined && {
        agree: () => worker.agree(worker.files.digest),
        firstNumber: worker.place.generation,
        share: worker.place,
        telling: worker.telling(logger),
      }),
    }).catch(async (thrown: unknown) => {
      await log?.close(0);
      throw thrown;
    });
    const doors = createDoors(
      generations.current.tokens,
      started.certificates,
      generations.current.keystone?.gate,
    );
    const refusedRequests = new RefusedRequests(logger);
    const heard: Heard = (record, asked) => {
      const { decisions, enforcement } = generations.current;
      decisions?.queue.add(record, asked);
      if (!record.allowed) {
        announceRefusal(enforcement.notifications, record);
      }
    };
    const recorder = new DecisionRecorder(metrics, log, heard, requestMember);
    const app = createApp({
      ...{ generations, doors, recorder },
      metrics,
      isDraining: () => state.isDraining,
      stopping: state.stopping.signal,
      refusedRequests,
      reports,
      logger,
    });
    const part =
      worker &&
      (await startPart(worker, {
        answer: app,
        current: () => generations.current,
        recorder,
      }).catch(async (thrown: unknown) => {
        await generations.close();
        await log?.close(0);
        throw thrown;
      }));
    const { host, port, deadline } = options;
    const everybodyShows = started.certificates.everybody;
    const listen = async () => {
      const refused = (request: RefusedRequest) => refusedRequests.log(request);
      const tls = readTls(tlsOptions);
      const answer = part?.answer ?? app;
      const { handed } = part ?? {};
      return Listener.open(answer, { host, port, deadline, tls, everybodyShows, refused, handed });
    };
    const certificates = await configuredKeeper(sectionOf(configuration, kubernetesSection), logger).catch(
      async (thrown: unknown) => {
        await generations.close();
        await log?.close(0);
        throw thrown;
      },
    );
    const listener = await listen().catch(async (thrown: unknown) => {
      await certificates?.close();
      await generations.close();
      await log?.close(0);
      throw thrown;
    });
    const follower = new Follower({
      current: () => generations.current,
      metrics: metrics.follower,
      logger,
    });
    const skypilotFollower = new SkypilotFollower({
      current: () => generations.current,
      metrics: metrics.skypilot,
      httpObserver: metrics,
      logger,
      record: async (record) => {
        if (!(await recorder.found(record))) {
          const { project_id: workspace, lease_name: cluster } = record;
          logger.error(
            { workspace, cluster },
            'a cluster that got past policies is missing from the decision log',
          );
        }
      },
    });
    const service = new Service({
      ...{ ...checked, sources, watched, watchdog, logger, metrics, log, stores, refusedRequests },
      ...{ generations, follower, skypilotFollower, certificates, reports, doors, listener, state },
      ...{ part, worker },
    });
    service.#report(generations.current);
    if (worker === undefined) {
      service.#followAll();
      certificates?.keeper.start();
      return service;
    }
    worker.start(
      {
        connection: (socket) => part?.take(socket),
        prepare: (topic) => service.#prepare(topic, worker),
        becomeDesk: () => {
          service.#followAll();
          certificates?.keeper.start();
        },
        answer: async (question) => (question === 'metrics' ? metrics.own() : (part?.recents() ?? '')),
      },
      { digest: worker.files.digest, doors: service.doors, tokenForLeases: service.tokenForLeases },
    );
    return service;
  }

  /** What one process does for all. */
  #followAll(): void {
    this.#parts.follower.start();
    this.#parts.skypilotFollower.start();
  }

  /** Prepares something, and uses it if all workers have prepared the same. @throws ConfigurationError */
  async #prepare(topic: Topic, worker: WorkerLink): Promise<void> {
    const { generations, tlsOptions } = this.#parts;
    if (topic === 'configuration') {
      if (!(await this.reload())) {
        throw new ConfigurationError(generations.problems);
      }
      return;
    }
    const { configuration } = generations.current;
    const found = findCredentials(configuration, tlsOptions);
    await worker.agree(digestOfCredentials(found));
    if (credentialFiles(configuration, tlsOptions).length > 0) {
      applyCredentials(found, { ...this.#parts, logger: worker.telling(this.#parts.logger) });
    }
  }

  /** Reads the configuration and all files again. Resolves to whether the new configuration has taken over. */
  async reload(): Promise<boolean> {
    const { sources, watched, log, generations, tlsOptions, state } = this.#parts;
    if (state.isDraining) {
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
    if (files.length > 0 && this.#parts.worker === undefined) {
      this.#readCredentials();
    }
    return applied;
  }

  /** Reads token and certificate files again; and the configuration too, if its mistakes may have been in these files. */
  async credentialsChanged(): Promise<void> {
    if (this.#readCredentials() && this.#parts.generations.problems.length > 0) {
      await this.reload();
    }
  }

  #readCredentials(): boolean {
    const { generations, tlsOptions } = this.#parts;
    return applyCredentials(findCredentials(generations.current.configuration, tlsOptions), this.#parts);
  }

  /** The step in which a new configuration begins to decide. */
  #takeOver(next: Generation): void {
    const { doors, listener, watchdog, worker } = this.#parts;
    next.decisions?.apply();
    replaceTokens(doors, next.tokens);
    doors.blazar.keystone = next.keystone?.gate;
    listener.replaceDeadline(next.options.deadline);
    watchdog?.watch(next.options);
    if (worker === undefined || worker.isDesk) {
      this.#followAll();
    }
    this.#report(next);
  }

  /** Policies and refusals are told to the cluster of a configuration. */
  #report({ configuration, kubernetes }: Generation): void {
    const options = sectionOf(configuration, kubernetesSection);
    this.#parts.reports.takeOver(kubernetes?.cluster?.cluster, options);
  }

  /** Logs and counts an error that nothing has caught. */
  reportUncaught(kind: UncaughtKind, thrown: unknown): void {
    const { metrics, logger } = this.#parts;
    metrics.uncaught(kind);
    const stack = thrown instanceof Error ? thrown.stack : undefined;
    logger.error({ kind, error: errorText(thrown), stack }, 'uncaught error, most likely of a filter');
  }

  /** Stops accepting, finishes what is under way, closes the filters and the logs, all within `shutdown_grace`. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const { state, watched, watchdog, generations, follower, listener, reports } = this.#parts;
    const { log, stores, refusedRequests, part } = this.#parts;
    void this.#parts.certificates?.close();
    state.isDraining = true;
    state.stopping.abort();
    stores.stop();
    watched.credentials.close();
    watched.configuration.close();
    // A signal that comes while a filter holds the process is heard late: the time since then counts.
    const lateMs = watchdog?.heldForMs() ?? 0;
    const graceMs = Math.max(0, generations.current.options.shutdown_grace * 1000 - lateMs);
    watchdog?.endIn(graceMs);
    const forFiltersMs = (graceMs * LAST_PART) / 2;
    const forLogMs = forFiltersMs;
    const finished = Promise.all([
      listener.close(graceMs - forFiltersMs - forLogMs),
      part?.close(graceMs - forFiltersMs - forLogMs),
      follower.close(),
      this.#parts.skypilotFollower.close(),
      reports.close(),
    ]).then(() => generations.close());
    await waitAtMost(graceMs - forLogMs, finished);
    refusedRequests.close();
    await Promise.all([log?.close(forLogMs), stores.close(forLogMs)]);
  }
}

async function waitAtMost(milliseconds: number, work: Promise<void>): Promise<void> {
  const late = new AbortController();
  await Promise.race([work, pause(milliseconds, undefined, { signal: late.signal }).catch(() => {})]);
  late.abort();
}
