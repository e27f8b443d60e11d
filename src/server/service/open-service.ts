/** Wires a service: the decision log, the filters and the port, in this order. */
import type { ConfigSources } from '../../config/sources.ts';
import { sectionOf } from '../../enforcement/configuration.ts';
import { createSharedServices } from '../../enforcement/services.ts';
import { configuredKeeper } from '../../kubernetes/cluster/certificates/configured-keeper.ts';
import { kubernetesSection } from '../../kubernetes/options.ts';
import { createLogger } from '../../logger.ts';
import { createApp } from '../app.ts';
import { readTls } from '../credentials.ts';
import { DecisionRecorder, type Heard, openDecisionLog, requestMemberOf } from '../decision-recorder.ts';
import { DecisionStores } from '../decision-stores.ts';
import { createDoors } from '../doors.ts';
import { Follower } from '../follower.ts';
import { Generations } from '../generations.ts';
import { readinessOf, readinessParts } from '../health.ts';
import { KeystoneGates } from '../keystone-gates.ts';
import { KubernetesReports } from '../kubernetes-reports.ts';
import { KubernetesSources } from '../kubernetes-sources.ts';
import { Listener } from '../listener.ts';
import { BudgetGauge } from '../metrics/budget-gauge.ts';
import { type Gauges, Metrics } from '../metrics/metrics.ts';
import { OutboxGauge } from '../metrics/outbox-gauge.ts';
import { announceRefusal } from '../refusal-notices.ts';
import { RefusedRequests } from '../refused-requests.ts';
import { SkypilotFollower } from '../skypilot-follower.ts';
import { askReadiness, openSentLog, startPart } from '../workers/load-part.ts';
import type { Question } from '../workers/messages.ts';
import { type CheckedConfiguration, filesRead, type Watched } from './checked-configuration.ts';
import { Service, type ServiceState } from './running-service.ts';
import type { ServiceSettings } from './service-settings.ts';

/** What is to be closed if a later step fails. */
type Opened = (() => Promise<void> | undefined)[];

/** @throws ConfigurationError also if the address cannot be used; nothing is left open then */
export async function openService(
  sources: ConfigSources,
  settings: ServiceSettings,
  watched: Watched,
  checked: CheckedConfiguration,
): Promise<Service> {
  const opened: Opened = [];
  try {
    return await open(sources, settings, watched, checked, opened);
  } catch (thrown) {
    for (const close of opened.reverse()) {
      await close();
    }
    throw thrown;
  }
}

async function open(
  sources: ConfigSources,
  settings: ServiceSettings,
  watched: Watched,
  checked: CheckedConfiguration,
  opened: Opened,
): Promise<Service> {
  const { configuration, options, tlsOptions, started } = checked;
  const { watchdog, worker } = settings;
  const always = worker === undefined ? null : { worker: worker.place.number };
  const { logger = createLogger(options.log_level, options.log_format, always) } = settings;
  const isSingle = () => worker === undefined || worker.isDesk;
  watchdog?.watch(options);
  const state: ServiceState = { isDraining: false, stopping: new AbortController() };
  const budgetGauge = new BudgetGauge();
  const outboxGauge = new OutboxGauge();
  const gauges: Gauges = {
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
    ...(worker !== undefined && { whole: () => worker.ask('metrics'), countsForAll: () => worker.isDesk }),
  };
  const metrics = new Metrics(gauges, settings.metricsClock);
  metrics.breakers = worker?.breakers;
  const gates = new KeystoneGates(createSharedServices({ logger, httpObserver: metrics }), metrics.tokens);
  const stores = new DecisionStores(logger, metrics.decisionStore);
  const reports = new KubernetesReports({ logger, observer: metrics.kubernetesStatus });
  const clusters = new KubernetesSources({
    logger: worker?.telling(logger) ?? logger,
    metrics: metrics.kubernetes,
    share: worker?.followed.share,
  });
  const requestMember = await requestMemberOf(options);
  const log =
    worker === undefined
      ? openDecisionLog(configuration, options, logger, metrics)
      : await openSentLog(options, logger, metrics);
  opened.push(() => log?.close(0));
  const generations: Generations = await Generations.start(sources, configuration, started, {
    logger,
    ...{ gates, stores, clusters },
    httpObserver: metrics,
    ledgerObserver: metrics,
    namesObserver: metrics,
    occupation: watchdog?.occupation,
    reloaded: (outcome) => metrics.reloaded(outcome),
    swapped: (generation) => service.takeOver(generation),
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
  });
  opened.push(() => generations.close());
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
    ...{ generations, doors, recorder, metrics, refusedRequests, reports, logger },
    isDraining: () => state.isDraining,
    stopping: state.stopping.signal,
    wholeReadiness: worker && ((own) => askReadiness(worker, own)),
  });
  const part =
    worker && (await startPart(worker, { answer: app, current: () => generations.current, recorder }));
  opened.push(() => part?.close(0));
  const certificates = await configuredKeeper(sectionOf(configuration, kubernetesSection), logger);
  opened.push(() => certificates?.close());
  const listener = await Listener.open(part?.answer ?? app, {
    ...{ host: options.host, port: options.port, deadline: options.deadline },
    tls: readTls(tlsOptions),
    everybodyShows: started.certificates.everybody,
    refused: (request) => refusedRequests.log(request),
    handed: part?.handed,
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
  service.report(generations.current);
  if (worker === undefined) {
    service.doForAll();
    return service;
  }
  const answers: Readonly<Record<Question, () => string | Promise<string>>> = {
    metrics: () => metrics.own(),
    recent: () => part?.recents() ?? '',
    readiness: () => JSON.stringify(readinessOf(readinessParts(generations, () => state.isDraining))),
  };
  worker.start(
    {
      connection: (socket) => part?.take(socket),
      prepare: (topic) => service.prepare(topic, worker),
      becomeDesk: () => service.doForAll(),
      answer: async (question) => answers[question](),
    },
    { digest: worker.files.digest, doors: service.doors, tokenForLeases: service.tokenForLeases },
  );
  return service;
}
