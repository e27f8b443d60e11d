/** The interface of a Kubernetes API server's client. */
import type { z } from 'zod';
import type { Wait } from '../../../base/deadline.ts';

/** Any object of the API: the common attributes. The rest is parsed where the kind is known. */
export interface ApiObject {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string | undefined;
    readonly uid?: string | undefined;
    /** Absent for kinds without a spec. */
    readonly generation?: number | undefined;
    readonly resourceVersion?: string | undefined;
  };
}

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** `/apis/scheduling.blazar-enforcement/v1alpha1/schedulingpolicies` */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: object;
  /** For a PATCH. Default: `application/merge-patch+json`. */
  readonly contentType?: string;
  /** Ends the call early. A call ends by itself after `[service] deadline`, or 10 s. */
  readonly wait?: Wait;
  readonly signal?: AbortSignal;
}

export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  readonly object: ApiObject;
}

/**
 * Why a watch was restarted. `ended`: on time, and confirmed. `expired`: 410. `silent`: overdue. `renewed`: a
 * list is due. `failed`: all else.
 */
export const RESTART_REASONS = ['ended', 'expired', 'silent', 'failed', 'renewed'] as const;

export type RestartReason = (typeof RESTART_REASONS)[number];

/** Credentials, authority and address are reread when their files change. */
export interface ApiClient {
  /** `https://10.0.0.1:6443`, without credentials, for logs and messages. */
  readonly server: string;
  /** The namespace of the kubeconfig's context, or of the service account. */
  readonly namespace: string | undefined;
  /** The `Date` of the latest answer, in milliseconds since 1970. `undefined` = it had none. */
  readonly serverTime: number | undefined;
  /** The body of a 2xx answer, parsed. @throws ApiError for another status @throws ApiUnreachableError */
  request(request: ApiRequest): Promise<unknown>;
  /**
   * The events of one watch, until the API server ends it. Silence is no error here: the caller decides how
   * long is too long, and fires `signal`. @throws ApiError, also one that arrives as an event (410)
   * @throws ApiUnreachableError
   */
  watch(
    path: string,
    query: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): AsyncIterable<WatchEvent>;
  close(): Promise<void>;
}

/** A refusal of the API server: its Status. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  /** `Forbidden`, `NotFound`, `Conflict`, `Expired`, … */
  readonly reason: string;

  constructor(status: number, reason: string, message: string) {
    super(message);
    this.status = status;
    this.reason = reason;
  }
}

/** No answer, or not one of an API server. The message has no secrets. */
export class ApiUnreachableError extends Error {
  override readonly name = 'ApiUnreachableError';
}

/** For `catch`: what is missing is `undefined`. */
export function unlessMissing(thrown: unknown): undefined {
  if (!(thrown instanceof ApiError && thrown.status === 404)) {
    throw thrown;
  }
}

/** @throws Error if the answer has another form */
export function parsedAs<Schema extends z.ZodType>(what: string, schema: Schema, answer: unknown) {
  const { data, success } = schema.safeParse(answer);
  if (!success) {
    throw new Error(`the API server answered with something that is not a ${what}`);
  }
  return data;
}
