/** Wires the parts of the service, and checks everything before the port opens. */
import type { IncomingMessage } from 'node:http';
import { refuseErrors } from '../../base/errors.ts';
import { LimitedLogger } from '../../base/limited-logger.ts';
import { createLogger, type Logger } from '../../base/logger.ts';
import type { ConfigSources } from '../../config/sources.ts';
import { type Configuration, requireConfiguration, sectionOf } from '../../enforcement/configuration.ts';
import { createSharedServices } from '../../enforcement/services.ts';
import {
  type CertificateTiming,
  configuredRotator,
} from '../../kubernetes/cluster/certificates/certificate-rotator.ts';
import { kubernetesSection } from '../../kubernetes/options.ts';
import { type AppParts, createAdminApp, createApp } from '../app.ts';
import { createAuthenticators, credentialFiles, tlsOptionsOf } from '../authentication/authenticators.ts';
import { expiryOf, readTls } from '../authentication/credentials.ts';
import { KeystoneAuthenticators } from '../authentication/keystone-authenticators.ts';
import type { Generation } from '../configuration/generation.ts';
import { Generations } from '../configuration/generations.ts';
import { serviceSection } from '../configuration/options.ts';
import { SECTIONS } from '../configuration/sections.ts';
import { startedWith, startProblems, storageProblems } from '../configuration/start-checks.ts';
import { WatchedFiles } from '../configuration/watched-files.ts';
import { Heartbeat } from '../decisions/heartbeat.ts';
import { DecisionRecorder, openDecisionLog, requestMemberOf } from '../decisions/recorder.ts';
import { DecisionStores } from '../decisions/stores.ts';
import { Follower } from '../followers/blazar-follower.ts';
import { KubernetesReports, KubernetesSources } from '../followers/kubernetes-sources.ts';
import { SkypilotFollower } from '../followers/skypilot-follower.ts';
import { Listener } from '../listener/socket.ts';
import { createBudgetGauge } from '../metrics/budget-metrics.ts';
import { createOutboxGauge } from '../metrics/ledger-metrics.ts';
import { type Gauges, Metrics } from '../metrics/metrics.ts';
import { logRefused, type RefusedRequest } from '../request-state.ts';
import type { Watchdog } from '../watchdog.ts';

/** A flood at one port leaves the other its connections. */
const ADMIN_SHARE = 0.1;

interface Changes {
  reload(): void;
  credentialsChanged(): void;
  takeOver(next: Generation): void;
}

export type ServiceParts = Awaited<ReturnType<typeof openParts>>;

/**
 * Opens everything, the port last. `opened`: gets what to close if a later step fails.
 *
 * @throws ConfigurationError also if the address cannot be used
 */
export async function openParts(
  sources: ConfigSources,
  settings: ServiceSettings,
  service: Changes,
  opened: (() => Promise<void> | undefined)[],
) {
  const watched = {
    configuration: new WatchedFiles(() => service.reload(), settings.pollMs),
    credentials: new WatchedFiles(() => service.credentialsChanged(), settings.pollMs),
  };
  const checked = await checkedConfiguration(sources, watched, settings);
  const { configuration, options, tlsOptions, started } = checked;
  const { watchdog, logger = createLogger(options.log_level, options.log_format) } = settings;
  watchdog?.watch(options);
  const stopping = new AbortController();
  const budgetGauge = createBudgetGauge();
  const outboxGauge = createOutboxGauge();
  const gauges: Gauges = {
    underWay: () => generations.underWay,
    queued: () => generations.queued,
    generation: () => generations.current.number,
    configurationIsValid: () => generations.problems.length === 0,
    budgets: () => {
      const { ledger, options: now } = generations.current;
      return budgetGauge.read(ledger, now.metrics_budgets);
    },
    tokens: () => keystoneAuthenticators.sizes,
    decisionsWaiting: () => stores.waiting,
    outbox: () => outboxGauge.read(generations.current.enforcement.outbox),
    cluster: () => generations.current.kubernetes?.cluster?.followed,
    writesStatus: () => reports.isLeader,
    missingWebhooks: () => reports.missingWebhooks,
  };
  const metrics = new Metrics(gauges, settings.metricsClock);
  const keystoneAuthenticators = new KeystoneAuthenticators(
    createSharedServices({ logger, httpObserver: metrics.calls }),
    metrics.tokens,
  );
  const stores = new DecisionStores(logger, metrics.decisionStore);
  const reports = new KubernetesReports({ logger, observer: metrics.kubernetesStatus });
  const clusters = new KubernetesSources({ logger, metrics: metrics.kubernetes });
  const requestMember = await requestMemberOf(options);
  const log = openDecisionLog(configuration, options, logger, metrics.decisionLog);
  opened.push(() => log?.close(0));
  const generations: Generations = await Generations.start(sources, configuration, started, {
    logger,
    keystoneAuthenticators,
    stores,
    clusters,
    httpObserver: metrics.calls,
    ledgerObserver: metrics.ledger,
    namesObserver: metrics.names,
    executions: watchdog?.executions,
    reloaded: (outcome) => metrics.reloaded(outcome),
    swapped: (generation) => service.takeOver(generation),
    isReadTooEarly: async (read) =>
      settings.watch === true &&
      (await watched.configuration.watch([
        ...filesRead(sources, generations.current.configuration),
        ...filesRead(sources, read),
      ])),
  });
  opened.push(() => generations.close());
  const authenticators = createAuthenticators(
    generations.current.tokens,
    started.certificates,
    generations.current.keystone?.authenticator,
  );
  const requestLogger = new LimitedLogger(logger);
  const recorder = new DecisionRecorder(metrics.decisions, log, generations, requestMember);
  const { host, port, reuse_port: reusePort, admin_host, admin_port } = options;
  const appParts: AppParts = {
    generations,
    authenticators,
    recorder,
    metrics,
    reports,
    logger: requestLogger,
    isDraining: () => stopping.signal.aborted,
    stopping: stopping.signal,
    hasAdminPort: admin_port !== undefined,
  };
  const certificates = await configuredRotator(
    sectionOf(configuration, kubernetesSection),
    logger,
    settings.certificateTiming,
  );
  opened.push(() => certificates?.close());
  const tls = readTls(tlsOptions);
  metrics.certificateExpiry = tls && expiryOf(tls);
  const bounds = {
    deadline: options.deadline,
    tls,
    everybodyShows: started.certificates.everybody,
    clientOf: (request: IncomingMessage) => generations.current.clientOf(request),
    refused: (request: RefusedRequest) => logRefused(requestLogger, request),
  };
  const admin =
    admin_port === undefined
      ? undefined
      : await Listener.open(createAdminApp(appParts), {
          ...bounds,
          host: admin_host,
          port: admin_port,
          share: ADMIN_SHARE,
        });
  opened.push(() => admin?.close(0));
  const listener = await Listener.open(createApp(appParts), {
    ...bounds,
    host,
    port,
    reusePort,
    share: admin === undefined ? 1 : 1 - ADMIN_SHARE,
  });
  const current = () => generations.current;
  const follower = new Follower({ current, metrics: metrics.follower, logger });
  const skypilotFollower = new SkypilotFollower({
    current,
    metrics: metrics.skypilot,
    httpObserver: metrics.calls,
    logger,
    record: async (record) => {
      if (!(await recorder.found(record))) {
        const { project_id: workspace, lease_name: cluster } = record;
        logger.error(
          { workspace, cluster },
          'a cluster that bypassed policies is missing from the decision log',
        );
      }
    },
  });
  return {
    ...checked,
    sources,
    watched,
    watchdog,
    logger,
    metrics,
    log,
    stores,
    requestLogger,
    generations,
    follower,
    skypilotFollower,
    reports,
    certificates,
    authenticators,
    listener,
    admin,
    stopping,
    heartbeat: new Heartbeat(current, logger),
  };
}

/** Watches each file before its last read, so as to miss no change. @throws ConfigurationError */
async function checkedConfiguration(
  sources: ConfigSources,
  watched: Readonly<Record<'configuration' | 'credentials', WatchedFiles>>,
  { watch: readAgain = false }: ServiceSettings,
) {
  const { configFiles = [], configDirs = [] } = sources;
  await watched.configuration.watch([...configFiles, ...configDirs]);
  let configuration = await requireConfiguration(sources, SECTIONS);
  while ((await watched.configuration.watch(filesRead(sources, configuration))) && readAgain) {
    configuration = await requireConfiguration(sources, SECTIONS);
  }
  const options = sectionOf(configuration, serviceSection);
  const started = startedWith(configuration);
  const problems = [
    ...startProblems(configuration, started),
    ...(await storageProblems(configuration, { ask: false })),
  ];
  refuseErrors(problems);
  configuration = { ...configuration, problems: [...configuration.problems, ...problems] };
  const tlsOptions = tlsOptionsOf(configuration, options);
  await watched.credentials.watch(credentialFiles(configuration, tlsOptions));
  return { configuration, options, tlsOptions, started };
}

export function filesRead(
  { configDirs = [] }: ConfigSources,
  { files, namedFiles }: Configuration,
): string[] {
  return [...files, ...namedFiles, ...configDirs];
}

export interface ServiceSettings {
  /** Default: standard error, with `log_level` and `log_format`. */
  readonly logger?: Logger;
  /** Whether to reload when a configuration file changes. Default false. */
  readonly watch?: boolean;
  /** How often to check for changed files, in milliseconds. Default 1000. */
  readonly pollMs?: number;
  /** The clock for the cache of metrics: monotonic, in milliseconds. Default: the clock of the process. */
  readonly metricsClock?: () => number;
  /** How soon certificates change. Default: as configured, and as long as API servers may take. */
  readonly certificateTiming?: CertificateTiming;
  /** Detects filters that block the process. Default: none. */
  readonly watchdog?: Pick<Watchdog, 'executions' | 'watch' | 'heldForMs' | 'endIn'>;
}
