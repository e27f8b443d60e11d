/** A route of the API: who may, what it takes and gives. The router, the rights and /openapi.json read the same object. */
import type { z } from 'zod';
import type { Deadline } from '../../base/deadline.ts';
import type { Logger } from '../../base/logger.ts';
import type { Generation } from '../configuration/generation.ts';
import type { Action, Caller } from '../users/caller.ts';

export interface ApiRequest<Query, Body> {
  readonly caller: Caller;
  /** From the path; empty for a route without. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: Query;
  readonly body: Body;
  /** A header of the request, in lower case; empty = it is not there. */
  header(name: string): string;
  readonly generation: Generation;
  readonly requestId: string;
  readonly deadline: Deadline;
  readonly logger: Logger;
}

/** An answer: JSON, or another type with its bytes. */
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
  /** Other types that it may have, if the client asks for them. Default: none. */
  readonly otherTypes?: Readonly<Record<string, z.ZodType>>;
  readonly headers?: Readonly<Record<string, { readonly description: string }>>;
}

export interface ApiRoute<Query = unknown, Body = unknown> {
  /** The `operationId`: `listProjects`. */
  readonly id: string;
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** `/v1/projects/{project_id}/leases` */
  readonly path: string;
  /** Who may; a `project_id` in the path is the project. Routes without one narrow their lists to `visibleProjects`. */
  readonly action: Action;
  readonly summary: string;
  readonly description: string;
  /** Each parameter with a `meta({ description })`. Unknown ones are refused. Default: none. */
  readonly query?: z.ZodType<Query>;
  /** Headers that it reads, by name. Default: none. */
  readonly headers?: Readonly<Record<string, { readonly description: string }>>;
  readonly body?: {
    /** Its name in /openapi.json. */
    readonly name: string;
    readonly schema: z.ZodType<Body>;
    readonly example: unknown;
    /** Other types than JSON, each with an example: `text/csv`. Their bodies arrive as a text, in UTF-8. Default: only JSON. */
    readonly texts?: Readonly<Record<string, string>>;
  };
  /** What it answers besides what every route may: 400, 401, 403, 405, 408, 429, 431, 500, 503. */
  readonly answers: readonly ApiExample[];
  answer(request: ApiRequest<Query, Body>): Promise<ApiAnswer>;
}

/** Types of query and body are those of the schemas. */
export function route<Query, Body>(entry: ApiRoute<Query, Body>): ApiRoute {
  return entry as unknown as ApiRoute;
}

/** What the client is told, with a status. Any other error is a fault of the service. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  readonly field: string | undefined;
  readonly headers: Readonly<Record<string, string>>;

  /** `cause`: for the log. */
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

/** The same for projects that do not exist: who may not see one learns nothing about it. */
export const NOT_ALLOWED = 'expected a caller with more rights: see "Who may do what" in the documentation';
