/**
 * A client for the status of clusters in SkyPilot's API server. Its calls are asynchronous: `POST /status`
 * returns a request id, and `GET /api/get` returns the result when it is ready. Source: SkyPilot 0.8 to 0.13,
 * its server.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import { withinDeadline } from '../base/deadline.ts';
import type { Call } from '../filter/verdict.ts';
import type { HttpClient } from '../http/contract.ts';
import type { PolicyServices } from './admin-policy.ts';

/** Maximum size of a response; a record has a few kilobytes. */
const MAX_ANSWER_BYTES = 1_048_576;
/** The server responds when the request is done. If it or a proxy responds earlier, the client polls. */
const MAX_POLLS = 20;

/** The second is the name before SkyPilot 0.10, and many proxies use it. */
const ID_HEADERS = ['x-skypilot-request-id', 'x-request-id'];
const REQUEST_ID = /^[A-Za-z0-9_-]{1,128}$/;
const UNFINISHED = ['PENDING', 'WAITING', 'RUNNING'];

const resultSchema = z.object({ status: z.string(), return_value: z.string().nullish() });
const recordsSchema = z.array(
  z.object({ name: z.string(), status: z.string().min(1), autostop: z.number().nullish() }),
);

export interface SkypilotCluster {
  readonly name: string;
  /** `UP`, `STOPPED`, `INIT`, or another one of a later SkyPilot. */
  readonly status: string;
  /** In minutes; negative = not set. */
  readonly autostop: number;
}

export interface SkypilotApiServerOptions {
  /** http or https, without credentials. */
  readonly url: string;
  /** Sent as `Authorization: Bearer`; empty = no such header. */
  readonly token: string;
  /** Time limit of a whole operation, in seconds. */
  readonly timeout: number;
  /** Between two requests for the result, in seconds. Default: 0.25. */
  readonly pollPause?: number;
  /** Maximum size of a response. Default: 1 MiB. */
  readonly maxAnswerBytes?: number;
}

/** A client for the API server of SkyPilot. Close it when it is no longer needed. */
export class SkypilotApiServer {
  readonly #url: string;
  readonly #timeout: number;
  readonly #pollPause: number;
  readonly #client: HttpClient;

  constructor(
    { url, token, timeout, pollPause = 0.25, maxAnswerBytes = MAX_ANSWER_BYTES }: SkypilotApiServerOptions,
    services: Pick<PolicyServices, 'http'>,
  ) {
    this.#url = url.replace(/\/+$/, '');
    this.#timeout = timeout;
    this.#pollPause = pollPause;
    this.#client = services.http.createClient({
      timeout,
      connectRetries: 1,
      breakerFailures: 0,
      breakerCooldown: 0,
      maxAnswerBytes,
      headers: token === '' ? {} : { authorization: `Bearer ${token}` },
    });
  }

  /** The cluster with this name, of any user; `undefined` = there is none. @throws Error if it is unknown */
  async cluster(name: string, call: Call): Promise<SkypilotCluster | undefined> {
    const body = {
      cluster_names: [name],
      refresh: 'AUTO',
      all_users: true,
      include_credentials: false,
      include_handle: false,
    };
    const records = recordsOf(await this.ask('/status', body, call));
    return records.find((record) => record.name === name);
  }

  /**
   * The result of a request, as JSON text. `body`: `null` = a GET. @throws Error without any part of the
   * response, if there is no result
   */
  ask(path: string, body: Readonly<Record<string, unknown>> | null, call: Call): Promise<unknown> {
    return withinDeadline(this.#timeout, async (deadline) => {
      const signal = AbortSignal.any(
        call.signal === undefined ? [deadline.signal] : [deadline.signal, call.signal],
      );
      return this.#result(await this.#begin(path, body, signal), signal);
    });
  }

  close(): Promise<void> {
    return this.#client.close();
  }

  async #begin(
    path: string,
    body: Readonly<Record<string, unknown>> | null,
    signal: AbortSignal,
  ): Promise<string> {
    const options = { signal, answerHeaders: ID_HEADERS };
    const url = `${this.#url}${path}`;
    const { status, headers = {} } = await (body === null
      ? this.#client.get(url, options)
      : this.#client.postJson(url, JSON.stringify(body), options));
    const what = `${body === null ? 'GET' : 'POST'} ${path}`;
    if (status !== 200) {
      throw new Error(`expected 200 from the API server for ${what}, got ${status}`);
    }
    const id = ID_HEADERS.map((header) => headers[header]).find((value) => value !== undefined);
    if (id === undefined || !REQUEST_ID.test(id)) {
      throw new Error(`the API server returned no usable id for ${what}`);
    }
    return id;
  }

  async #result(id: string, signal: AbortSignal): Promise<unknown> {
    for (let poll = 1; poll <= MAX_POLLS; poll += 1) {
      const { status, body } = await this.#client.get(`${this.#url}/api/get?request_id=${id}`, { signal });
      if (status !== 200) {
        throw new Error(`expected 200 from the API server for GET /api/get, got ${status}`);
      }
      const result = answerOf(resultSchema, body);
      if (result.status === 'SUCCEEDED') {
        return result.return_value;
      }
      if (!UNFINISHED.includes(result.status)) {
        throw new Error('the API server could not determine the status of the cluster');
      }
      await pause(this.#pollPause * 1000, undefined, { signal });
    }
    throw new Error(`the API server had no result after ${MAX_POLLS} requests`);
  }
}

function recordsOf(text: unknown): SkypilotCluster[] {
  return answerOf(recordsSchema, text).map(({ autostop, ...record }) => ({
    ...record,
    autostop: autostop ?? -1,
  }));
}

/** The content of a response. @throws Error without any part of it: it may contain credentials */
export function answerOf<Schema extends z.ZodType>(schema: Schema, text: unknown): z.infer<Schema> {
  try {
    return schema.parse(JSON.parse(String(text)));
  } catch {
    throw new Error('the response of the API server has an unknown form');
  }
}
