/** The process of one server: `server-main.js KIND [DECISION-LOG]`. Answers until its parent is gone. */
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { CAPTURED_SECONDS } from './requests.ts';

/** What is asked of the server's process: what it has used, or to read its configuration anew. */
export type ServerQuestion = 'processor' | 'memory' | 'reload';

/** The answer to a question, or that it listens. */
export interface ServerMessage {
  readonly url?: string;
  /** Nanoseconds. */
  readonly processor?: number;
  /** Bytes, after a collection of garbage. */
  readonly memory?: { readonly resident: number; readonly heap: number };
  readonly reloaded?: boolean;
}

interface Running {
  readonly url: string;
  reload?(): Promise<boolean>;
  close?(): Promise<void>;
}

/** Each answers what it must with 204. */
const SERVERS: Readonly<Record<string, (decisionLog?: string) => Promise<Running>>> = {
  'node:http': () =>
    listen((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk) => chunks.push(chunk));
      request.on('end', () => {
        JSON.parse(Buffer.concat(chunks).toString());
        response.writeHead(204).end();
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

  service: async (decisionLog) => {
    const { startService } = await import('../src/server/service.ts');
    const { createLogger } = await import('../src/logger.ts');
    const values = {
      enforcement: { enabled_filters: ['MaxLeaseDurationFilter'], max_lease_duration: CAPTURED_SECONDS },
      service: { port: 0, ...(decisionLog !== undefined && { decision_log: decisionLog }) },
    };
    return startService({ environment: {}, configFiles: [], values }, { logger: createLogger('warn') });
  },
};

function listen(answer: RequestListener): Promise<Running> {
  const server = createServer(answer);
  // Between two turns its connections idle longer than Node's five seconds where the machine is busy.
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

function memoryBytes() {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  // Once for what is garbage, once more for what only finalizers let go.
  collect();
  collect();
  const { rss, heapUsed } = process.memoryUsage();
  return { resident: rss, heap: heapUsed };
}

function tellParent(message: ServerMessage): void {
  process.send?.(message);
}

const [kind = '', decisionLog] = process.argv.slice(2);
const server = await SERVERS[kind]?.(decisionLog);
if (server === undefined) {
  throw new Error(`there is no server ${kind}`);
}
process.on('message', async (question: ServerQuestion) => {
  switch (question) {
    case 'processor':
      return tellParent({ processor: processorNanoseconds() });
    case 'memory':
      return tellParent({ memory: memoryBytes() });
    case 'reload':
      return tellParent({ reloaded: (await server.reload?.()) ?? false });
  }
});
process.on('disconnect', async () => {
  await server.close?.();
  process.exit();
});
tellParent({ url: server.url });
