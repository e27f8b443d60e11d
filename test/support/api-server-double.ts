/**
 * A small API server, for faults that a real one cannot produce, and for fast tests. It responds like
 * Kubernetes 1.20: lists in pages, watches with bookmarks, 410, Status, versions, generations, the
 * subresource `status`, reviews.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import { temporaryFolder } from './filter-folder.ts';
import { listen } from './listening.ts';
import { isIn, ObjectStore } from './object-store.ts';
import { tlsFixture } from './tls.ts';

export type { StoredObject } from './object-store.ts';

/** Replaces the response to a request. */
export type Fault =
  | 'html'
  | 'empty'
  /** Half of the response, then the connection is closed. */
  | 'cut'
  | 'garbled'
  /** No response. */
  | 'silent'
  /** The connection is closed before a response. */
  | 'closed'
  | { readonly status: number; readonly retryAfter?: string; readonly location?: string }
  | { readonly delayMs: number };

interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly authorization: string | undefined;
  readonly body: string;
}

interface Watching {
  readonly answer: ServerResponse;
  readonly collection: string;
  end(bookmark: boolean): void;
}

export interface ApiServerDouble {
  /** `https://127.0.0.1:34567` */
  readonly url: string;
  readonly requests: SeenRequest[];
  readonly store: ObjectStore;
  /** Accepted bearer tokens. Default: `token`. */
  readonly tokens: Set<string>;
  /** Nonexistent resources. Default: none. */
  readonly unknown: Set<string>;
  /** Decides all access reviews. Default: denies them. */
  review: (spec: ReviewSpec) => boolean;
  fault: (request: SeenRequest) => Fault | undefined;
  readonly watches: number;
  /** Writes a kubeconfig with a token, and returns its path. */
  kubeconfig(token?: string): string;
  /** No responses or watch events from now on, until `thaw`. */
  freeze(): void;
  thaw(): void;
  /** Ends all watches cleanly, before their time. */
  endWatches(): void;
  /** Closes the connections of all watches in the middle of an event. */
  cutWatches(): void;
  /** Writes raw bytes to all watches. */
  writeToWatches(raw: string): void;
}

interface ReviewSpec {
  readonly user?: string;
  readonly groups?: readonly string[];
  readonly resourceAttributes?: Readonly<Record<string, string>>;
}

/** Stops at the end of the test. */
export async function startApiServerDouble(): Promise<ApiServerDouble> {
  const store = new ObjectStore();
  const requests: SeenRequest[] = [];
  const watching = new Set<Watching>();
  const tokens = new Set(['token']);
  const unknown = new Set<string>();
  let frozen: (() => void)[] | undefined;
  const thawed = () =>
    new Promise<void>((resolve) => (frozen === undefined ? resolve() : frozen.push(resolve)));

  const server = createServer(
    { cert: readFileSync(tlsFixture('server.pem')), key: readFileSync(tlsFixture('server.key')) },
    (request, answer) => {
      answer.on('error', () => undefined);
      serve(request, answer).catch((thrown: unknown) =>
        sendStatus(answer, 500, 'InternalError', String(thrown)),
      );
    },
  );
  server.on('connection', (socket) => void socket.on('error', () => undefined));
  store.onEvent = (collection, type, object) => {
    void thawed().then(() => {
      for (const { answer } of [...watching].filter((one) => isIn(collection, one.collection))) {
        answer.write(`${JSON.stringify({ type, object })}\n`);
      }
    });
  };

  async function serve(request: IncomingMessage, answer: ServerResponse): Promise<void> {
    const { method = 'GET', url = '/', headers } = request;
    const { pathname: path, searchParams: query } = new URL(url, 'https://double');
    const seen = { method, path, query, authorization: headers.authorization, body: await text(request) };
    requests.push(seen);
    await thawed();
    const fault = double.fault(seen);
    if (fault !== undefined && !(await show(fault, answer))) {
      return;
    }
    if (!tokens.has(headers.authorization?.replace(/^Bearer /, '') ?? '')) {
      sendStatus(answer, 401, 'Unauthorized', 'Unauthorized');
      return;
    }
    const review = /\/(self|local)?subjectaccessreviews$/.exec(path);
    if (review !== null && method === 'POST') {
      const asked = JSON.parse(seen.body) as { readonly spec: ReviewSpec };
      send(answer, 201, { ...asked, status: { allowed: double.review(asked.spec) } });
      return;
    }
    if (unknown.has(store.resourceOf(path))) {
      sendStatus(answer, 404, 'NotFound', 'the server could not find the requested resource');
      return;
    }
    if (method === 'GET' && query.get('watch') === 'true') {
      watch(path, query, answer);
      return;
    }
    const { status, body } = store.serve(method, path, query, seen.body);
    send(answer, status, body);
  }

  function watch(path: string, query: URLSearchParams, answer: ServerResponse): void {
    const missed = store.since(path, Number(query.get('resourceVersion')));
    answer.writeHead(200, { 'content-type': 'application/json' });
    answer.flushHeaders();
    if (missed === undefined) {
      const message = `too old resource version: ${query.get('resourceVersion')}`;
      answer.end(`${JSON.stringify({ type: 'ERROR', object: status(410, 'Expired', message) })}\n`);
      return;
    }
    for (const event of missed) {
      answer.write(`${JSON.stringify(event)}\n`);
    }
    const one: Watching = {
      answer,
      collection: path,
      end: (bookmark) => {
        clearTimeout(timer);
        watching.delete(one);
        const object = { metadata: { resourceVersion: String(store.version) } };
        answer.end(bookmark ? `${JSON.stringify({ type: 'BOOKMARK', object })}\n` : undefined);
      },
    };
    const seconds = Number(query.get('timeoutSeconds') ?? 1800);
    const bookmarks = query.get('allowWatchBookmarks') === 'true';
    const timer = setTimeout(() => void thawed().then(() => one.end(bookmarks)), seconds * 1000);
    timer.unref();
    watching.add(one);
    answer.on('close', () => {
      clearTimeout(timer);
      watching.delete(one);
    });
  }

  const { port } = await listen(server);
  onTestFinished(() => double.thaw());
  const url = `https://127.0.0.1:${port}`;
  const double: ApiServerDouble = {
    url,
    requests,
    store,
    tokens,
    unknown,
    review: () => false,
    fault: () => undefined,
    get watches() {
      return watching.size;
    },
    kubeconfig: (token = 'token') => {
      const file = join(temporaryFolder(), 'kubeconfig');
      const cluster = { server: url, 'certificate-authority': tlsFixture('ca.pem') };
      writeFileSync(
        file,
        JSON.stringify({
          'current-context': 'context',
          contexts: [{ name: 'context', context: { cluster: 'cluster', user: 'user' } }],
          clusters: [{ name: 'cluster', cluster }],
          users: [{ name: 'user', user: { token } }],
        }),
      );
      return file;
    },
    freeze: () => {
      frozen ??= [];
    },
    thaw: () => {
      const waiting = frozen ?? [];
      frozen = undefined;
      for (const go of waiting) {
        go();
      }
    },
    endWatches: () => {
      for (const one of watching) {
        one.end(false);
      }
    },
    cutWatches: () => {
      for (const { answer } of watching) {
        answer.write('{"type":"ADDED","object":{"metadata":{"na', () => answer.destroy());
      }
    },
    writeToWatches: (raw) => {
      for (const { answer } of watching) {
        answer.write(raw);
      }
    },
  };
  return double;
}

/** Whether to send the response after all. */
async function show(fault: Fault, answer: ServerResponse): Promise<boolean> {
  if (typeof fault === 'object' && 'delayMs' in fault) {
    await new Promise((resolve) => setTimeout(resolve, fault.delayMs).unref());
    return true;
  }
  if (typeof fault === 'object') {
    const { status: code, retryAfter, location } = fault;
    answer.setHeaders(
      new Map(
        Object.entries({ ...(retryAfter && { 'retry-after': retryAfter }), ...(location && { location }) }),
      ),
    );
    sendStatus(answer, code, 'Faulty', `an answer with ${code}`);
    return false;
  }
  switch (fault) {
    case 'html':
      answer.writeHead(200, { 'content-type': 'text/html' }).end('<html><body>Log in</body></html>');
      break;
    case 'empty':
      answer.writeHead(200).end();
      break;
    case 'garbled':
      answer.writeHead(200, { 'content-type': 'application/json' }).end('{"kind": \u0000');
      break;
    case 'cut':
      answer
        .writeHead(200, { 'content-length': 1000 })
        .write('{"kind":"List","items":[', () => answer.destroy());
      break;
    case 'closed':
      answer.destroy();
      break;
    case 'silent':
      break;
  }
  return false;
}

function status(code: number, reason: string, message: string) {
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, code };
}

function sendStatus(answer: ServerResponse, code: number, reason: string, message: string): void {
  send(answer, code, status(code, reason, message));
}

function send(answer: ServerResponse, code: number, body: object): void {
  const json = JSON.stringify(body);
  answer
    .writeHead(code, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(json) })
    .end(json);
}
