/** Measures a call to an external service relative to a minimal HTTP client. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request as httpRequest } from 'node:http';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type CreateRequest, UsageEnforcement } from '../src/index.ts';
import { amount } from './harness/amount.ts';
import type { Subject, Suite } from './harness/suite.ts';
import { capturedRequests } from './requests.ts';

/** Profile of axios and attempts to make it faster: medians of three runs when this was built. */
const AXIOS_NOTES = [
  'The cost of axios, as calls relative to node:http: its defaults 0.27; without the redirect follower 0.29; also without proxies, decompression and validation of the status 0.33; posting text without transforms 0.32. The cost is in the adapter, which wraps streams around every request and response.',
  'Of the processor time of a call, writing to the socket takes 19 %, axios with our own adapter over a pool of undici 9 %, the key that tells repetitions apart 6 %, the text of the request 6 %, collecting garbage 5 %; the rest is spread over the pool, the deadline, the circuit breaker and the decision. Commit bdf9082 did not send that key.',
];

const CALLERS = 16;
const CALLS_PER_CALLER = amount(64, 4);

/** Posts one request. Resolves when the response has been read; rejects unless its status is 204. */
type Post = (request: CreateRequest) => Promise<unknown>;

interface Client {
  readonly post: Post;
  close(): unknown;
}

async function filter(base: string): Promise<Client> {
  const enforcement = await UsageEnforcement.load({
    environment: {},
    values: {
      enforcement: { enabled_filters: ['ExternalServiceFilter'], external_service_base_endpoint: base },
    },
  });
  return {
    async post(request) {
      const { allowed, message } = await enforcement.checkCreate(request);
      if (!allowed) {
        throw new Error(`expected 204, got ${message}`);
      }
    },
    close: () => enforcement.close(),
  };
}

async function bareHttp(base: string): Promise<Client> {
  const agent = new Agent({ keepAlive: true, maxSockets: CALLERS });
  const { hostname, port } = new URL(base);
  const to = { agent, hostname, port, path: '/check-create', method: 'POST' };
  return {
    post: (request) =>
      new Promise((resolve, reject) => {
        const body = JSON.stringify(request);
        const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
        httpRequest({ ...to, headers }, (answer) => {
          answer.resume();
          answer.on('end', () =>
            answer.statusCode === 204
              ? resolve(undefined)
              : reject(new Error(`expected 204, got ${answer.statusCode}`)),
          );
        })
          .on('error', reject)
          .end(body);
      }),
    close: () => agent.destroy(),
  };
}

async function axiosDefaults(base: string): Promise<Client> {
  const { default: axios } = await import('axios');
  return {
    async post(request) {
      const { status } = await axios.post(`${base}/check-create`, request);
      if (status !== 204) {
        throw new Error(`expected 204, got ${status}`);
      }
    },
    close() {},
  };
}

/** The service runs in its own process, as in production. */
async function calls(connect: (base: string) => Promise<Client>): Promise<Subject> {
  const main = new URL(`./external-service-server${extname(import.meta.url)}`, import.meta.url);
  const server = fork(fileURLToPath(main), { stdio: ['ignore', 2, 2, 'ipc'] });
  const [port] = await once(server, 'message');
  const client = await connect(`http://127.0.0.1:${port}`);
  const requests = capturedRequests().slice(0, CALLS_PER_CALLER);
  const caller = async () => {
    for (const request of requests) {
      await client.post(request);
    }
  };
  return {
    operations: CALLERS * requests.length,
    batch: () => Promise.all(Array.from({ length: CALLERS }, caller)),
    async close() {
      await client.close();
      server.disconnect();
    },
  };
}

export const suite: Suite = {
  name: 'external-service',
  file: import.meta.url,
  rounds: 7,
  turnMilliseconds: 400,
  subjects: {
    ExternalServiceFilter: () => calls(filter),
    'node:http': () => calls(bareHttp),
    'axios, defaults': () => calls(axiosDefaults),
  },
  comparisons: [
    {
      name: 'calls',
      measured: 'ExternalServiceFilter',
      comparedWith: 'node:http',
      of: 'rate',
      target: { atLeast: 0.8 },
    },
    { name: 'calls of plain axios', measured: 'axios, defaults', comparedWith: 'node:http', of: 'rate' },
  ],
  notes: [
    `${CALLERS} concurrent callers over loopback, each waiting for its response before the next call. The service is a node:http server in its own process that reads the body and responds with 204.`,
    'ExternalServiceFilter is called through UsageEnforcement.checkCreate, which includes validation of the request and the decision. node:http is http.request with a keep-alive agent of 16 sockets. Both serialize the request once per call. Plain axios is axios.post(url, request).',
    ...AXIOS_NOTES,
  ],
};
