/** The process of one server: `server-main.js KIND FOLDER`. Exits with its parent. */
import { writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { clusterDocuments, USED } from './admission-reviews.ts';
import { answerAsApiServer } from './api-server.ts';
import { CAPTURED_SECONDS } from './requests.ts';
import { KUBECONFIG, LEASE_POLICIES, LEDGER, LOG, ON_LEDGER, POLICIES } from './server-files.ts';
import { answerAsKeystone, FIXED_TOKEN } from './tokens.ts';
import { removeTracing } from './tracing/remove.ts';
import { type Observed, Observer } from './worst-case/observed.ts';

/** Requests to the server's process: report its usage, or reload its configuration. */
export type ServerQuestion = 'processor' | 'memory' | 'reload' | 'observe' | 'observed';

/** The reply to a request, or the message that it listens. */
export interface ServerMessage {
  readonly url?: string;
  /** Nanoseconds. */
  readonly processor?: number;
  /** Bytes, after garbage collection. */
  readonly memory?: { readonly resident: number; readonly heap: number };
  readonly reloaded?: boolean;
  /** Since `observe`. */
  readonly observed?: Observed;
}

interface Running {
  readonly url: string;
  reload?(): Promise<boolean>;
  close?(): Promise<void>;
}

/** Each must respond with 204, or with 200 for reviews. Logs and policies are in the folder. */
const SERVERS: Readonly<Record<string, (folder: string) => Promise<Running>>> = {
  'node:http': () =>
    listen((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk) => chunks.push(chunk));
      request.on('end', () => {
        JSON.parse(Buffer.concat(chunks).toString());
        response.writeHead(204).end();
      });
    }),

  'node:http, reviews': () =>
    listen((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk) => chunks.push(chunk));
      request.on('end', () => {
        const { apiVersion, kind, request: asked } = JSON.parse(Buffer.concat(chunks).toString());
        const body = JSON.stringify({ apiVersion, kind, response: { uid: asked.uid, allowed: true } });
        const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) };
        response.writeHead(200, headers).end(body);
      });
    }),

  Koa: async () => {
    const { default: Koa } = await import('koa');
    const app = new Koa().use((ctx) => {
      ctx.status = 204;
    });
    return listen(app.callback());
  },

  'Koa, co-body': async () => {
    const { default: Koa } = await import('koa');
    const { default: parse } = await import('co-body');
    const app = new Koa().use(async (ctx) => {
      JSON.parse(await parse.text(ctx.req));
      ctx.status = 204;
    });
    return listen(app.callback());
  },

  service: () => service(LIMIT),

  'service, decision log': (folder) => service({ ...LIMIT, service: { decision_log: join(folder, LOG) } }),

  'service, no tracing': async (folder) => {
    await removeTracing();
    return service({ ...LIMIT, service: { decision_log: join(folder, LOG) } });
  },
  'service, tracing': async (folder) => {
    await removeTracing({ kept: true });
    return service({ ...LIMIT, service: { decision_log: join(folder, LOG) } });
  },

  'service, tokens': async () => {
    const keystone = await listen(answerAsKeystone);
    return service({
      ...LIMIT,
      service: { tokens: [FIXED_TOKEN], keystone_auth: true },
      keystone: {
        auth_url: `${keystone.url}/v3`,
        username: 'blazar',
        password: 'blazar',
        project_name: 'service',
      },
    });
  },

  'service, ledger': () => service(onLedger('none', ON_IT)),
  'service, ledger, decisions': () => service(onLedger('all', ON_IT)),
  'service, beside a ledger': () => service(onLedger('none', LIMIT.enforcement)),
  'service, beside a ledger, decisions': () => service(onLedger('all', LIMIT.enforcement)),

  'service, reviews': (folder) =>
    service({
      service: { decision_log: join(folder, LOG) },
      kubernetes: { scheduling_policies: [join(folder, POLICIES)] },
    }),

  'service, live reviews': async (folder) => {
    const apiServer = await listen(answerAsApiServer(clusterDocuments(USED)));
    const kubeconfig = join(folder, KUBECONFIG);
    writeFileSync(kubeconfig, kubeconfigOf(apiServer.url), { mode: 0o600 });
    const running = await service({
      service: { decision_log: join(folder, LOG) },
      kubernetes: { source: 'cluster', kubeconfig },
    });
    while ((await fetch(`${running.url}/readyz`)).status !== 200) {
      await pause(20);
    }
    return running;
  },

  'service, all of it': async (folder) => {
    const connection = `sqlite:///${join(folder, LEDGER)}`;
    const { makeLedger } = await import('./ledger-databases.ts');
    await makeLedger(connection, 'p');
    return service({
      enforcement: {
        enabled_filters: [
          'LeaseDatesFilter',
          'MaxLeaseDurationFilter',
          'MaxReservationSizeFilter',
          'SchedulingPolicyFilter',
          'MaxLeasesFilter',
          'UsageBudgetFilter',
        ],
        max_lease_duration: CAPTURED_SECONDS,
        max_reservation_size: { 'physical:host': 100_000 },
        scheduling_policy_path: join(folder, LEASE_POLICIES),
        usage_budget_rate_attribute: 'su_factor',
        usage_budget_required: false,
      },
      ledger: { connection },
      service: { decision_log: join(folder, LOG) },
      kubernetes: { scheduling_policies: [join(folder, POLICIES)] },
      skypilot: {
        admin_policies: ['UseSpotForGpuPolicy'],
      },
    });
  },
};

function kubeconfigOf(server: string): string {
  return JSON.stringify({
    'current-context': 'bench',
    contexts: [{ name: 'bench', context: { cluster: 'bench', user: 'bench' } }],
    clusters: [{ name: 'bench', cluster: { server } }],
    users: [{ name: 'bench', user: { token: 'bench' } }],
  });
}

const LIMIT = {
  enforcement: { enabled_filters: ['MaxLeaseDurationFilter'], max_lease_duration: CAPTURED_SECONDS },
};

const ON_IT = {
  enabled_filters: ['MaxLeaseDurationFilter', 'MaxLeasesFilter', 'UsageBudgetFilter'],
  max_lease_duration: CAPTURED_SECONDS,
  max_leases_per_project: 1_000_000_000,
  usage_budget_required: false,
};

function onLedger(decision_store: 'all' | 'none', enforcement: Readonly<Record<string, unknown>>) {
  return { enforcement, ledger: { connection: process.env[ON_LEDGER] }, service: { decision_store } };
}

async function service(
  values: Readonly<Record<string, Readonly<Record<string, unknown>>>>,
): Promise<Running> {
  const { startService } = await import('../src/server/service.ts');
  const { createLogger } = await import('../src/base/logger.ts');
  const sources = {
    environment: {},
    configFiles: [],
    values: { ...values, service: { port: 0, ...values.service } },
  };
  // Prevents cached metrics: the bench reads counters immediately.
  let now = 0;
  const metricsClock = () => {
    now += 2000;
    return now;
  };
  return startService(sources, { logger: createLogger('error'), metricsClock });
}

function listen(answer: RequestListener): Promise<Running> {
  const server = createServer(answer);
  // Between two turns, connections may be idle longer than Node's default of five seconds.
  server.keepAliveTimeout = 60_000;
  return new Promise((listening) => {
    server.listen(0, '127.0.0.1', () =>
      listening({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }),
    );
  });
}

function processorNanoseconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) * 1000;
}

function collector(): () => void {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
}

function memoryBytes() {
  const collect = collector();
  // Once for garbage, and again for memory released by finalizers.
  collect();
  collect();
  const { rss, heapUsed } = process.memoryUsage();
  return { resident: rss, heap: heapUsed };
}

function tellParent(message: ServerMessage): void {
  process.send?.(message);
}

const [kind = '', folder = ''] = process.argv.slice(2);
const server = await SERVERS[kind]?.(folder);
if (server === undefined) {
  throw new Error(`there is no server ${kind}`);
}
const observer = new Observer();
process.on('message', async (question: ServerQuestion) => {
  switch (question) {
    case 'processor':
      return tellParent({ processor: processorNanoseconds() });
    case 'memory':
      return tellParent({ memory: memoryBytes() });
    case 'reload':
      return tellParent({ reloaded: (await server.reload?.()) ?? false });
    case 'observe':
      observer.begin(collector());
      return tellParent({});
    case 'observed':
      return tellParent({ observed: observer.end() });
  }
});
process.on('disconnect', async () => {
  await server.close?.();
  process.exit();
});
tellParent({ url: server.url });
