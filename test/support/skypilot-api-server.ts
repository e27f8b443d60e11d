/**
 * A double of SkyPilot's API server: asynchronous requests, and the results of `/cost_report`, `/status` and
 * `/workspaces`. Source: `sky/server/server.py`, `sky/core.py`, `sky/global_user_state.py` and
 * `sky/server/requests/serializers` of 1.0.0-dev, API version 56.
 */

import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { listening, type Service } from './services.ts';

/** A cluster of a test. */
export interface ClusterSetup {
  readonly name: string;
  readonly workspace?: string;
  readonly user?: string;
  readonly userName?: string;
  readonly nodes?: number;
  /** `undefined` = none: SkyPilot writes `None`. */
  readonly accelerators?: Readonly<Record<string, number>>;
  readonly cloud?: string;
  readonly isSpot?: boolean;
  /** Default: p3.2xlarge. */
  readonly instanceType?: string;
  readonly isManaged?: boolean;
  readonly autostop?: number;
  /** Default: UP. */
  readonly status?: 'INIT' | 'UP' | 'STOPPED';
}

interface Cluster extends Omit<ClusterSetup, 'status'> {
  readonly hash: string;
  status: 'INIT' | 'UP' | 'STOPPED' | null;
  autostopMinutes: number;
  readonly intervals: [number, number | null][];
}

export interface ApiServerOptions {
  /** In seconds of the epoch. */
  readonly now: () => number;
  readonly token?: string;
  /** The name of its header with the request id. */
  readonly idHeader?: string;
  /** The workspaces visible to the account. Default: all. */
  readonly visible?: readonly string[];
}

export type Disturbance = (response: ServerResponse, path: string) => boolean;

export class SkypilotApiDouble {
  readonly #options: ApiServerOptions;
  readonly #clusters: Cluster[] = [];
  readonly #requests = new Map<string, { name: string; value: unknown; polls: number }>();
  #service: Service | undefined;
  /** Called first; handles the request if it returns true. */
  disturb: Disturbance | undefined;
  /** The number of `/api/get` responses that report a running request before it ends. */
  pending = 0;
  /** The result of requests. */
  outcome: 'SUCCEEDED' | 'FAILED' = 'SUCCEEDED';
  /** The requested paths. */
  readonly asked: string[] = [];
  /** Bodies and headers of the requests with a body. */
  readonly received: { readonly body: unknown; readonly headers: IncomingMessage['headers'] }[] = [];

  private constructor(options: ApiServerOptions) {
    this.#options = options;
  }

  static async start(options: ApiServerOptions): Promise<SkypilotApiDouble> {
    const double = new SkypilotApiDouble(options);
    const server = createServer((request, response) => {
      void text(request).then((body) => double.#answer(request, body, response));
    });
    double.#service = await listening(server, [], 'http', 0);
    return double;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#service?.port}`;
  }

  /** Creates a running cluster, or starts a stopped one. As in SkyPilot, names are unique. */
  launch(setup: ClusterSetup): void {
    const there = this.#clusters.find(({ name, status }) => name === setup.name && status !== null);
    if (there !== undefined) {
      this.start(setup.name);
      return;
    }
    this.#clusters.push({
      ...setup,
      hash: randomUUID(),
      status: setup.status ?? 'UP',
      autostopMinutes: setup.autostop ?? -1,
      intervals: [[this.#options.now(), null]],
    });
  }

  start(name: string): void {
    const cluster = this.#there(name);
    if (cluster?.status === 'STOPPED') {
      cluster.status = 'UP';
      cluster.intervals.push([this.#options.now(), null]);
    }
  }

  stop(name: string): void {
    this.#end(name, 'STOPPED');
  }

  down(name: string): void {
    this.#end(name, null);
  }

  autostop(name: string, minutes: number): void {
    const cluster = this.#there(name);
    if (cluster !== undefined) {
      cluster.autostopMinutes = minutes;
    }
  }

  isUp(name: string): boolean {
    return this.#there(name)?.status === 'UP';
  }

  /** Loses all data, like a server with a lost database. */
  forget(): void {
    this.#clusters.length = 0;
  }

  /** The true usage of clusters until now: seconds times accelerators, by workspace. */
  used(workspace: string, countOf: (cluster: Omit<ClusterSetup, 'status'>) => number): number {
    return this.#clusters
      .filter((cluster) => (cluster.workspace ?? 'default') === workspace)
      .flatMap((cluster) =>
        cluster.intervals.map(([from, until]) => ((until ?? this.#options.now()) - from) * countOf(cluster)),
      )
      .reduce((sum, one) => sum + one, 0);
  }

  #there(name: string): Cluster | undefined {
    return this.#clusters.find((cluster) => cluster.name === name && cluster.status !== null);
  }

  #end(name: string, status: 'STOPPED' | null): void {
    const cluster = this.#there(name);
    if (cluster === undefined) {
      return;
    }
    const last = cluster.intervals.at(-1);
    if (last !== undefined && last[1] === null) {
      last[1] = this.#options.now();
    }
    cluster.status = status;
  }

  #answer(request: IncomingMessage, body: string, response: ServerResponse): void {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://api');
    this.asked.push(`${request.method} ${pathname}`);
    if (body !== '') {
      this.received.push({ body: JSON.parse(body), headers: request.headers });
    }
    if (this.disturb?.(response, pathname) === true) {
      return;
    }
    const { token, idHeader = 'X-Skypilot-Request-ID' } = this.#options;
    if (token !== undefined && request.headers.authorization !== `Bearer ${token}`) {
      response.writeHead(401).end('{"detail":"Unauthorized"}');
      return;
    }
    if (pathname === '/api/get') {
      this.#get(searchParams.get('request_id') ?? '', response);
      return;
    }
    const value = this.#valueOf(`${request.method} ${pathname}`, body);
    if (value === undefined) {
      response.writeHead(404).end('{"detail":"Not Found"}');
      return;
    }
    const id = randomUUID();
    this.#requests.set(id, { name: pathname, value, polls: 0 });
    // A proxy in front may number requests itself.
    const headers = { 'X-Request-ID': 'of-the-proxy', [idHeader]: id, 'Content-Type': 'application/json' };
    response.writeHead(200, headers).end('null');
  }

  /** The real server waits until a request has ended; a proxy may respond before. */
  #get(id: string, response: ServerResponse): void {
    const known = this.#requests.get(id);
    if (known === undefined) {
      response.writeHead(404).end('{"detail":"Request not found"}');
      return;
    }
    known.polls += 1;
    const isOver = known.polls > this.pending;
    const failed = isOver && this.outcome === 'FAILED';
    const payload = {
      ...resultOf(isOver ? this.outcome : 'RUNNING', isOver && !failed ? known.value : null),
      request_id: id,
      name: `sky.${known.name.slice(1)}`,
      error: failed ? JSON.stringify({ type: 'builtins.ValueError', message: 'a secret' }) : 'null',
    };
    // A failed request is a 500 whose detail is the request.
    response
      .writeHead(failed ? 500 : 200, { 'Content-Type': 'application/json' })
      .end(JSON.stringify(failed ? { detail: payload } : payload));
  }

  #valueOf(what: string, body: string): unknown {
    const asked = body === '' ? {} : (JSON.parse(body) as Record<string, unknown>);
    switch (what) {
      case 'POST /cost_report':
        return this.#report(asked as { days?: number | null; cluster_names?: string[] | null });
      case 'POST /status':
        return this.#clusters
          .filter(({ status, isManaged }) => status !== null && isManaged !== true)
          .map(stateOf);
      case 'GET /workspaces':
        return Object.fromEntries(
          (
            this.#options.visible ?? [
              'default',
              ...this.#clusters.map(({ workspace = 'default' }) => workspace),
            ]
          ).map((name) => [name, {}]),
        );
      default:
        return undefined;
    }
  }

  /** Existing clusters, and those used within this number of days. */
  #report({
    days,
    cluster_names: names,
  }: {
    days?: number | null;
    cluster_names?: string[] | null;
  }): unknown[] {
    const since = this.#options.now() - (days ?? 30) * 86_400;
    return this.#clusters
      .filter(({ status, intervals }) => status !== null || (intervals.at(-1)?.[1] ?? 0) >= since)
      .filter(({ name }) => !names || names.includes(name))
      .map((cluster) => reportOf(cluster, this.#options.now()))
      .reverse();
  }
}

/** The result of a request as `/api/get` returns it. */
export function resultOf(status: string, value: unknown) {
  return {
    request_id: randomUUID(),
    name: 'sky.status',
    entrypoint: 'gASVIg==',
    request_body: 'gASVJw==',
    status,
    created_at: 1766.5,
    user_id: 'svc',
    return_value: JSON.stringify(value),
    error: 'null',
    pid: null,
    schedule_type: 'short',
  };
}

function stateOf({
  name,
  status,
  workspace,
  user,
  userName,
  autostopMinutes,
  hash,
  nodes,
}: Cluster): unknown {
  return {
    name,
    launched_at: 1766,
    last_use: 'sky launch',
    status,
    autostop: autostopMinutes,
    to_down: false,
    cluster_hash: hash,
    cluster_ever_up: true,
    status_updated_at: 0,
    user_hash: user ?? 'a1b2c3d4',
    user_name: userName ?? 'lee',
    workspace: workspace ?? 'default',
    is_managed: false,
    nodes: nodes ?? 1,
    labels: {},
    handle: 'gASVIg==',
    storage_mounts_metadata: 'gAROLg==',
  };
}

/** Formatted like in Python. */
function python(accelerators: Readonly<Record<string, number>> | undefined): string {
  return accelerators === undefined
    ? 'None'
    : `{${Object.entries(accelerators)
        .map(([name, count]) => `'${name}': ${count}`)
        .join(', ')}}`;
}

function reportOf(cluster: Cluster, now: number): unknown {
  const { name, intervals, nodes = 1, accelerators, cloud = 'AWS', isSpot, hash, status } = cluster;
  const { instanceType = 'p3.2xlarge' } = cluster;
  return {
    name,
    launched_at: intervals[0]?.[0] ?? null,
    duration: intervals.reduce((sum, [from, until]) => sum + (until ?? now) - from, 0),
    num_nodes: nodes,
    resources: 'gASVIg==',
    priority: null,
    priority_class: null,
    cluster_hash: hash,
    usage_intervals: intervals,
    status,
    user_hash: cluster.user ?? 'a1b2c3d4',
    user_name: cluster.userName ?? 'lee',
    workspace: cluster.workspace ?? 'default',
    last_event: null,
    node_names: null,
    last_creation_yaml: null,
    last_creation_command: null,
    total_cost: 1.5,
    cloud,
    region: 'us-east-1',
    cpus: '8',
    memory: '61',
    accelerators: python(accelerators),
    resources_str: `${nodes}x(gpus=${python(accelerators)}, ...)`,
    resources_str_full: `${nodes}x${isSpot ? '[spot]' : ''}(gpus=${python(accelerators)}, cpus=8, mem=61, ${instanceType}, disk=256)`,
  };
}
