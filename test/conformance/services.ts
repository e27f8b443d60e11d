/** A small policy service that does everything right, and a place to make it do one thing wrong. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Fields } from '../../src/conformance/leases.ts';
import {
  type ConformanceOptions,
  type ConformanceReport,
  runConformance,
} from '../../src/conformance/run.ts';
import type { Operation } from '../../src/conformance/target.ts';
import { listen } from '../support/listening.ts';

export const TOKEN = 'right-token-of-the-tests';

/** What a body should be; a service that trusts in it has much to learn. */
export interface Body {
  readonly context: Fields;
  readonly lease: Fields & { readonly reservations: readonly Fields[] };
  readonly [name: string]: unknown;
}

/** One request, as far as it could be read. */
export interface Asked {
  readonly operation: Operation;
  readonly text: string;
  /** `undefined` when the body is no JSON object with a lease. */
  readonly json: Body | undefined;
  readonly token: string | undefined;
  readonly request: IncomingMessage;
}

/** One with the right token and a body that could be read. */
export type Real = Asked & { readonly json: Body };

export function isReal(asked: Asked): asked is Real {
  return asked.token === TOKEN && asked.json !== undefined;
}

/** Whether it is a right request for this. */
export function asks(asked: Asked, operation: Operation): asked is Real {
  return isReal(asked) && asked.operation === operation;
}

export interface Answer {
  readonly status: number;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What a service answers otherwise than the right one; `undefined` = as that, `hangUp` = nothing, `silence` = never. */
export type Fault = (
  asked: Asked,
) => Answer | 'hangUp' | 'silence' | undefined | Promise<Answer | 'hangUp' | 'silence' | undefined>;

export interface SmallService {
  readonly url: string;
  readonly asked: Asked[];
  stop(): Promise<void>;
}

const OPERATIONS: Readonly<Record<string, Operation>> = {
  '/check-create': 'create',
  '/check-update': 'update',
  '/on-end': 'end',
  '/commit-create': 'commitCreate',
  '/commit-update': 'commitUpdate',
};
const LONGEST_MS = 5 * 86_400_000;
const BUDGET_MS = 4 * 86_400_000;

/** Asks for `TOKEN`, allows leases of up to five days, and four days at once in `climate`; gone after the test. */
export async function smallService(fault: Fault = () => undefined): Promise<SmallService> {
  const asked: Asked[] = [];
  const used: Used[] = [];
  const server = createServer(async (request, response) => {
    const operation = OPERATIONS[request.url ?? ''];
    const body = await text(request);
    if (operation === undefined) {
      response.writeHead(404).end();
      return;
    }
    const token = request.headers['x-auth-token'] as string | undefined;
    const one = { operation, text: body, json: jsonObject(body), token, request };
    asked.push(one);
    give(response, (await fault(one)) ?? overBudget(one, used) ?? rightAnswer(one));
  });
  const { port, stop } = await listen(server);
  return { url: `http://127.0.0.1:${port}`, asked, stop };
}

function give(response: ServerResponse, answer: Answer | 'hangUp' | 'silence'): void {
  if (answer === 'hangUp') {
    response.destroy();
  } else if (answer !== 'silence') {
    response.writeHead(answer.status, answer.headers).end(answer.body);
  }
}

export function rightAnswer({ operation, json, token }: Asked): Answer {
  if (token !== TOKEN) {
    return { status: 401, body: '{"message":"expected a token"}' };
  }
  if (json === undefined) {
    return { status: 400, body: '{"message":"expected a JSON object"}' };
  }
  return operation !== 'end' && lengthOf(json) > LONGEST_MS
    ? { status: 403, body: '{"message":"Five days are the limit."}' }
    : { status: 204 };
}

function lengthOf({ lease: { start_date, end_date, end_time } }: Body): number {
  const parse = (date: unknown) =>
    Date.parse(/[T ].*(Z|[+-]\d\d:\d\d)$/.test(`${date}`) ? `${date}` : `${date}Z`);
  return parse(end_date ?? end_time) - parse(start_date);
}

/** A lease of the project: its id as soon as it is known. */
interface Used {
  readonly name: unknown;
  readonly key: unknown;
  id?: unknown;
  length: number;
}

function overBudget(asked: Asked, used: Used[]): Answer | undefined {
  if (!isReal(asked) || asked.json.context.project_id !== 'climate' || rightAnswer(asked).status !== 204) {
    return undefined;
  }
  const { current_lease, lease } = asked.json as Body & { readonly current_lease?: Fields };
  const { id, name } = current_lease ?? lease;
  const key = asked.request.headers['idempotency-key'];
  const isNew = asked.operation === 'create';
  const one = isNew
    ? used.find((known) => key !== undefined && known.key === key)
    : (used.find((known) => known.id === id) ??
      used.find((known) => known.id === undefined && known.name === name));
  if (one !== undefined && !isNew) {
    one.id = id;
  }
  const length = asked.operation === 'end' ? 0 : lengthOf(asked.json);
  const left = used.reduce((rest, known) => rest - (known === one ? 0 : known.length), BUDGET_MS);
  if (length > left) {
    return { status: 403, body: '{"message":"Four days are the limit of a project."}' };
  }
  if (one !== undefined && !asked.operation.startsWith('commit')) {
    one.length = length;
  } else if (isNew) {
    used.push({ name, key, length });
  }
  return undefined;
}

function jsonObject(body: string): Body | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === 'object' && value !== null && 'lease' in value ? (value as Body) : undefined;
  } catch {
    return undefined;
  }
}

/** A `check-create` of so many days. */
export function daysLong(days: number): string {
  return JSON.stringify({
    context: { user_id: 'alice', project_id: 'climate' },
    lease: {
      name: `of ${days} days`,
      start_date: '2026-12-01T09:00:00',
      end_date: `2026-12-${String(1 + days).padStart(2, '0')}T09:00:00`,
      reservations: [],
    },
  });
}

/** A `check-update` of a lease of a day, to be so many days long. */
export function toBeDaysLong(days: number): string {
  const { context, lease } = JSON.parse(daysLong(days));
  const { lease: current_lease } = JSON.parse(daysLong(1));
  return JSON.stringify({ context, current_lease: { id: 'lease-1', ...current_lease }, lease });
}

/** A whole run with the right token and all requests of the author; a large lease has 300 hosts. */
export function runAgainst(
  url: string,
  options: Partial<ConformanceOptions> = {},
): Promise<ConformanceReport> {
  return runConformance({
    endpoints: allEndpointsAt(url),
    credentials: { token: TOKEN },
    timeout: 5,
    allowLease: daysLong(1),
    denyLease: daysLong(9),
    denyUpdate: toBeDaysLong(9),
    denyCommit: daysLong(9),
    largeLeaseHosts: 300,
    ...options,
  });
}

export function endpointsAt(url: string): ConformanceOptions['endpoints'] {
  const at = (path: string) => new URL(`${url}${path}`);
  return { create: at('/check-create'), update: at('/check-update'), end: at('/on-end') };
}

/** With those of the forks. */
export function allEndpointsAt(url: string): ConformanceOptions['endpoints'] {
  const at = (path: string) => new URL(`${url}${path}`);
  return { ...endpointsAt(url), commitCreate: at('/commit-create'), commitUpdate: at('/commit-update') };
}

/** The ids of the checks that ended so. */
export function idsOf({ results }: ConformanceReport, ended: 'passed' | 'failed' | 'skipped'): string[] {
  return results.filter(({ result }) => result === ended).map(({ check }) => check.id);
}

/** A listener for bytes; what it writes is all that comes. */
export async function rawServer(answer: string): Promise<string> {
  const server = createTcpServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', () => socket.write(answer));
  });
  return `http://127.0.0.1:${(await listen(server)).port}`;
}
