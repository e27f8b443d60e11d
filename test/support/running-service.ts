/** The policy service on a port of its own, and a client that looks at everything that comes back. */
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { text as wholeText } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest';
import { ConfigurationError, formatProblem } from '../../src/base/errors.ts';
import { LimitedLogger } from '../../src/base/limited-logger.ts';
import type { DecisionLog } from '../../src/decisions/log.ts';
import { readConfiguration, requireConfiguration } from '../../src/enforcement/configuration.ts';
import type { ConfigSources, UsageEnforcement } from '../../src/index.ts';
import { createApp } from '../../src/server/app.ts';
import { createAuthenticators } from '../../src/server/authentication/authenticators.ts';
import { Generation } from '../../src/server/configuration/generation.ts';
import { serviceOptions } from '../../src/server/configuration/options.ts';
import { SECTIONS } from '../../src/server/configuration/sections.ts';
import type { ConsolePage } from '../../src/server/console/page.ts';
import { CONSOLE_PAGES } from '../../src/server/console/pages.ts';
import { DecisionRecorder } from '../../src/server/decisions/recorder.ts';
import { Metrics } from '../../src/server/metrics/metrics.ts';
import { type Service, type ServiceSettings, startService } from '../../src/server/service.ts';
import { skypilotOptions } from '../../src/skypilot/options.ts';
import { PolicyChain } from '../../src/skypilot/policies/policy-chain.ts';
import { confFile, valuesOnly } from './files.ts';
import { filterFolder } from './filter-folder.ts';
import { listen } from './listening.ts';
import { type RecordingLogger, recordingLogger } from './logger.ts';
import { metric } from './metric.ts';
import { hurriedClock } from './samples.ts';

/** Timeout of expected data. */
const DEADLINE_MILLISECONDS = 200_000;

export interface ServiceAnswer {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
  /** The body, if it is JSON. */
  readonly json: unknown;
}

/** A service that a test may reload and close. Closed after the test. */
export interface RunningPolicyService extends RunningService {
  readonly service: Service;
}

/** Options of a service. Filters are files of `filters_path`: name → text. */
export interface ServiceOptions {
  readonly enforcement?: Readonly<Record<string, unknown>>;
  readonly service?: Readonly<Record<string, unknown>>;
  readonly skypilot?: Readonly<Record<string, unknown>>;
  readonly kubernetes?: Readonly<Record<string, unknown>>;
  readonly keystone?: Readonly<Record<string, unknown>>;
  readonly filters?: Readonly<Record<string, string>>;
}

/** Default: two days for everyone. */
export function runService(options: ServiceOptions = {}): Promise<RunningPolicyService> {
  return runServiceOn(sourcesOf(options));
}

/** One service for all tests of a file or a `describe`: call it there. Without additional filters. */
export function sharedService(options: Omit<ServiceOptions, 'filters'> = {}): () => RunningPolicyService {
  let running: RunningPolicyService | undefined;
  beforeAll(async () => {
    running = await start(quiet(sourcesOf(options)));
  });
  afterAll(() => running?.service.close());
  return () => {
    if (running === undefined) {
      throw new Error('the service is there for tests only');
    }
    return running;
  };
}

function sourcesOf(options: ServiceOptions): ConfigSources {
  return valuesOnly({
    enforcement: {
      enabled_filters: ['MaxLeaseDurationFilter'],
      max_lease_duration: 172_800,
      ...(options.filters && { filters_path: [filterFolder(options.filters)] }),
      ...options.enforcement,
    },
    service: { port: 0, ...options.service },
    skypilot: { ...options.skypilot },
    kubernetes: { ...options.kubernetes },
    keystone: { ...options.keystone },
  });
}

/** The service with a configuration from the test. */
export async function runServiceOn(
  sources: ConfigSources,
  settings: ServiceSettings = {},
): Promise<RunningPolicyService> {
  const running = await start(quiet(sources), settings);
  onTestFinished(() => running.service.close());
  return running;
}

/** The service of these values, on a port of its own, without files and variables. */
export function runServiceOf(
  values: Readonly<Record<string, Readonly<Record<string, unknown>>>>,
  settings?: ServiceSettings,
): Promise<RunningPolicyService> {
  return runServiceOn(valuesOnly({ ...values, service: { port: 0, ...values.service } }), settings);
}

/** The service of a file with this text. */
export async function runServiceOnFile(text: string, settings: ServiceSettings = {}) {
  const conf = confFile(text);
  const running = await runServiceOn({ environment: {}, configFiles: [conf] }, settings);
  /** Writes another text, and reloads. Resolves to whether it was accepted. */
  const change = (next: string): Promise<boolean> => {
    writeFileSync(conf, next);
    return running.service.reload();
  };
  return { ...running, conf, change };
}

/** The mistakes that `config validate` shows, for which the service does not start. */
export async function startMistakes(sources: ConfigSources): Promise<string[]> {
  const { problems } = await readConfiguration(sources, SECTIONS);
  const mistakes = problems.filter(({ severity }) => severity === 'error').map(formatProblem);
  const started = startService(sources, { logger: recordingLogger() });
  await expect(started).rejects.toThrow(ConfigurationError);
  await expect(started).rejects.toThrow(mistakes.join('\n'));
  return mistakes;
}

/** Without a decision store by default: its thread takes longer to start than most tests. */
function quiet(sources: ConfigSources): ConfigSources {
  const { configFiles = [], values } = sources;
  return configFiles.length > 0
    ? sources
    : { ...sources, values: { ...values, service: { decision_store: 'none', ...values?.service } } };
}

async function start(sources: ConfigSources, settings: ServiceSettings = {}): Promise<RunningPolicyService> {
  const logger = recordingLogger();
  const service = await startService(sources, { logger, metricsClock: hurriedClock(), ...settings });
  return { ...client(service.url, logger), service };
}

/** The service around a given enforcement, and optionally a decision log. */
export async function runApp(
  enforcement: UsageEnforcement,
  tokens: string[] = [],
  {
    log,
    pages = CONSOLE_PAGES,
    ...settings
  }: {
    readonly log?: DecisionLog;
    readonly pages?: readonly ConsolePage[];
    readonly deadline?: number;
  } = {},
): Promise<RunningService> {
  const logger = recordingLogger();
  const configuration = await requireConfiguration({ environment: {}, configFiles: [] }, SECTIONS);
  const options = serviceOptions.parse({ tokens, ...settings });
  const users = { operator: [], reader: [], metrics: [] };
  const protocolTokens = { blazar: tokens, skypilot: [], kubernetes: [], users };
  const skypilot = {
    options: skypilotOptions.parse({}),
    policies: await PolicyChain.fromConfiguration(configuration),
  };
  const current = new Generation({
    number: 1,
    configuration,
    options,
    tokens: protocolTokens,
    enforcement,
    skypilot,
    kubernetes: undefined,
  });
  const metrics = new Metrics(
    {
      underWay: () => 0,
      queued: () => 0,
      generation: () => 1,
      configurationIsValid: () => true,
    },
    hurriedClock(),
  );
  const app = createApp({
    generations: { current, problems: [] },
    pages,
    authenticators: createAuthenticators(protocolTokens, { everybody: false, kubernetes: false }),
    recorder: new DecisionRecorder(metrics.decisions, log),
    metrics,
    isDraining: () => false,
    logger: new LimitedLogger(logger),
  });
  const { port } = await listen(createServer(app));
  return client(`http://127.0.0.1:${port}`, logger);
}

type RunningService = ReturnType<typeof client>;

function client(url: string, logger: RecordingLogger) {
  const port = Number(new URL(url).port);
  const request = async (path: string, init: RequestInit = {}): Promise<ServiceAnswer> => {
    const answer = await fetch(url + path, init);
    const text = await answer.text();
    expectNoTrace(text);
    const isJson = answer.headers.get('Content-Type')?.startsWith('application/json') === true;
    const json: unknown = isJson && text !== '' ? JSON.parse(text) : undefined;
    return { status: answer.status, text, headers: answer.headers, json };
  };
  return {
    url,
    port,
    logger,
    request,
    /** Sends a JSON body: a value, or text and bytes as is. */
    post: (path: string, body: unknown, headers: Record<string, string> = {}) =>
      request(path, {
        method: 'POST',
        body:
          typeof body === 'string'
            ? body
            : body instanceof Uint8Array
              ? new Uint8Array(body)
              : JSON.stringify(body),
        headers: { 'Content-Type': 'application/json', ...headers },
      }),
    /** Writes bytes to a separate connection, and reads until the service closes it or `ends` matches. */
    raw: async (bytes: string, ends?: RegExp) => {
      const socket = connect(port, '127.0.0.1').setEncoding('utf8');
      socket.setTimeout(DEADLINE_MILLISECONDS, () => socket.destroy());
      socket.write(bytes);
      let read = '';
      if (ends === undefined) {
        read = await wholeText(socket);
      } else {
        for await (const chunk of socket) {
          read += chunk;
          if (ends.test(read)) {
            break;
          }
        }
      }
      expectNoTrace(read);
      return read;
    },
  };
}

/** No response may reveal our code. */
function expectNoTrace(text: string): void {
  expect(text).not.toMatch(/\n\s+at |node_modules|\.[jt]s:\d+|node:internal/);
}

/** Decision metrics of the service. */
export async function figures({ request }: RunningPolicyService) {
  const { text } = await request('/metrics');
  const of = (name: string) => metric(text, `blazar_enforcement_${name}`);
  return {
    underWay: of('decisions_under_way'),
    queued: of('decisions_queued'),
    decisions: of('decisions_total'),
    refusals: of('overload_refusals_total'),
  };
}

export const errorsOf = ({ logger }: Pick<RunningService, 'logger'>) =>
  logger.lines.filter(({ level }) => level === 'error');
