/**
 * A route of the API: rights, input, output, errors. Router, authorization and /openapi.json read the same
 * object.
 */
import { STATUS_CODES } from 'node:http';
import type { Context } from 'koa';
import type { z } from 'zod';
import type { Deadline } from '../../base/deadline.ts';
import type { Generation } from '../configuration/generation.ts';
import { pathOf } from '../listener/connections.ts';
import type { Action, Caller } from '../users/caller.ts';

export interface ApiRequest<Query, Body> {
  readonly caller: Caller;
  /** From the path; empty for a route without parameters. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: Query;
  readonly body: Body;
  /** A header of the request, by its name in lower case; empty = missing. */
  header(name: string): string;
  readonly generation: Generation;
  readonly requestId: string;
  readonly deadline: Deadline;
}

/** A response: JSON, or text of another type. */
export interface ApiAnswer {
  /** Default 200. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Default: none. */
  readonly json?: unknown;
  /** Instead of `json`. */
  readonly content?: { readonly type: string; readonly text: string | AsyncIterable<string> };
}

export interface ApiExample {
  readonly status: number;
  readonly description: string;
  /** Default: none. */
  readonly schema?: z.ZodType;
  /** The name of `schema` in /openapi.json. */
  readonly name?: string;
  /** Default `application/json`. */
  readonly type?: string;
  /** Other types that the client may request. Default: none. */
  readonly otherTypes?: Readonly<Record<string, z.ZodType>>;
  readonly headers?: Readonly<Record<string, { readonly description: string }>>;
}

export interface ApiRoute<Query = unknown, Body = unknown> {
  /** The `operationId`: `listProjects`. */
  readonly id: string;
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** `/v1/projects/{project_id}/leases` */
  readonly path: string;
  /** The required right, in the `project_id` of the path. Routes without one use `visibleProjects`. */
  readonly action: Action;
  readonly summary: string;
  readonly description: string;
  /** Each parameter with a `meta({ description })`. Unknown ones are refused. Default: none. */
  readonly query?: z.ZodType<Query>;
  /** Request headers that the route reads, by name. Default: none. */
  readonly headers?: Readonly<Record<string, { readonly description: string }>>;
  readonly body?: {
    /** Its name in /openapi.json. */
    readonly name: string;
    readonly schema: z.ZodType<Body>;
    readonly example: unknown;
    /** Accepted types besides JSON, with examples: `text/csv`. Bodies are UTF-8 text. Default: only JSON. */
    readonly texts?: Readonly<Record<string, string>>;
  };
  /** Responses besides those of every route: 400, 401, 403, 405, 408, 429, 431, 500, 503. */
  readonly answers: readonly ApiExample[];
  answer(request: ApiRequest<Query, Body>): Promise<ApiAnswer>;
}

/** Infers the types of query and body from the schemas. */
export function route<Query, Body>(entry: ApiRoute<Query, Body>): ApiRoute {
  return entry as unknown as ApiRoute;
}

/** An error for the client, with a status. Any other error is a fault of the service. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  readonly field: string | undefined;
  readonly headers: Readonly<Record<string, string>>;

  /** `cause`: only for the log. */
  constructor(
    status: number,
    message: string,
    {
      field,
      headers = {},
      cause,
    }: { field?: string; headers?: Record<string, string>; cause?: unknown } = {},
  ) {
    super(message, { cause });
    this.status = status;
    this.field = field;
    this.headers = headers;
  }
}

/** When the ledger or Keystone does not answer, or there is no room: in seconds. */
export const RETRY_AFTER = { 'Retry-After': '5' } as const;

/** The same for projects that do not exist, so that callers cannot probe for them. */
export const NOT_ALLOWED = 'expected a caller with more rights: see "Who may do what" in the documentation';

/** Problem details (RFC 9457), whichever part of the service answers. */
export const PROBLEM_TYPE = 'application/problem+json';

/** An error body with the members of RFC 9457 added. */
export function problemOf(status: number, body: object): object {
  const title = STATUS_CODES[status] ?? '';
  return { ...body, type: 'about:blank', title, status, ...('message' in body && { detail: body.message }) };
}

/**
 * Turns an error of the API into a problem. Blazar's protocol is served elsewhere and has its own errors. The
 * content type stays JSON unless the client accepts the other: the command and other clients of 1.0 read only
 * JSON.
 */
export function answerProblem(ctx: Context): void {
  const { status, body } = ctx;
  // Koa sends texts and streams as such.
  const isRecord = Object.getPrototypeOf(body ?? '') === Object.prototype;
  if (status < 400 || !pathOf(ctx.req).startsWith('/v1/') || !isRecord) {
    return;
  }
  ctx.body = problemOf(status, body as object);
  if (/(?:^|[\s,])application\/problem\+json(?=$|[\s,;])/i.test(ctx.get('Accept'))) {
    ctx.type = PROBLEM_TYPE;
  }
}
