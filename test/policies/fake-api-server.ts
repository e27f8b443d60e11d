import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { listening, type Service } from '../support/services.ts';

/** A cluster as `sky status` has it, with more members than a policy needs. */
export interface ClusterRecord {
  readonly name: string;
  readonly status: string;
  readonly autostop: number | null;
}

type Answer = (response: ServerResponse, id: string, poll: number) => void;

/** What the server does in place of what SkyPilot's does. */
export interface Behaviour {
  readonly onStatus?: (response: ServerResponse, id: string) => void;
  readonly onGet?: Answer;
}

export interface FakeApiServer extends Service {
  /** Without a path. */
  readonly base: string;
  /** What came to `POST /status`. */
  readonly questions: { readonly body: Record<string, unknown>; readonly headers: IncomingHttpHeaders }[];
  readonly polls: string[];
}

/** The result of a request as `/api/get` tells it. */
export function resultOf(id: string, status: string, records: unknown): string {
  return JSON.stringify({
    request_id: id,
    name: 'sky.status',
    entrypoint: 'gASVIg==',
    request_body: 'gASVJw==',
    status,
    return_value: JSON.stringify(records),
    error: 'null',
    pid: null,
    created_at: 1766.5,
    schedule_type: 'short',
    user_id: 'svc',
  });
}

/** Speaks the protocol of SkyPilot's API server for these clusters. It is gone after the test. */
export async function startApiServer(
  clusters: readonly ClusterRecord[],
  { onStatus = begin, onGet }: Behaviour = {},
): Promise<FakeApiServer> {
  const questions: FakeApiServer['questions'] = [];
  const polls: string[] = [];
  const asked = new Map<string, readonly string[]>();
  const get: Answer = onGet ?? ((response, id) => response.end(resultOf(id, 'SUCCEEDED', found(id))));
  const found = (id: string) =>
    clusters
      .filter(({ name }) => asked.get(id)?.includes(name))
      .map((record) => ({ ...record, to_down: false, launched_at: 1766, handle: null, user_name: 'kim' }));
  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? '/', 'http://api');
    if (request.method === 'POST' && url.pathname === '/status') {
      const body = JSON.parse(await text(request)) as Record<string, unknown>;
      questions.push({ body, headers: request.headers });
      const id = `0b8e3a9c-0000-4000-8000-${String(questions.length).padStart(12, '0')}`;
      asked.set(id, body.cluster_names as string[]);
      onStatus(response, id);
    } else if (request.method === 'GET' && url.pathname === '/api/get') {
      const id = url.searchParams.get('request_id') ?? '';
      polls.push(id);
      if (asked.has(id)) {
        get(response, id, polls.length);
      } else {
        response.writeHead(404).end('{"detail":"not found"}');
      }
    } else {
      response.writeHead(404).end();
    }
  });
  const service = await listening(server, [], 'http', 0);
  return { ...service, base: `http://127.0.0.1:${service.port}`, questions, polls };
}

/** Both headers, as a server behind a proxy that numbers requests itself. */
function begin(response: ServerResponse, id: string): void {
  response.writeHead(200, { 'X-Skypilot-Request-ID': id, 'X-Request-ID': 'of-the-proxy' }).end('null');
}
