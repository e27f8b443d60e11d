/**
 * A client for the status of clusters in SkyPilot's API server. Its calls are asynchronous: `POST /status` returns a
 * request id, and `GET /api/get` returns the result when it is ready. Source: SkyPilot 0.8 to 0.13, its server.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { withinDeadline } from 'blazar-enforcement';
import { z } from 'zod';

/** Maximum size of a response; a record has some kilobytes. */
const MAX_ANSWER_BYTES = 1_048_576;
/** The server responds when the request is done. If it or a proxy responds earlier, the client polls. */
const MAX_POLLS = 20;

/** The second was the name before SkyPilot 0.10, and many proxies use it. */
const ID_HEADERS = ['x-skypilot-request-id', 'x-request-id'];
const REQUEST_ID = /^[A-Za-z0-9_-]{1,128}$/;
const UNFINISHED = ['PENDING', 'WAITING', 'RUNNING'];

const resultSchema = z.object({ status: z.string(), return_value: z.string().nullish() });
const recordsSchema = z.array(
  z.object({ name: z.string(), status: z.string().min(1), autostop: z.number().nullish() }),
);

/**
 * @typedef {object} Cluster
 * @property {string} name
 * @property {string} status `UP`, `STOPPED`, `INIT` or another of a later SkyPilot
 * @property {number} autostop minutes; negative = not set
 */

export class SkypilotApiServer {
  #url;
  #timeout;
  #pollPause;
  #client;

  /**
   * @param {{ url: string, token: string, timeout: number, pollPause?: number }} options in seconds; `timeout` is for
   * the
   * whole operation
   * @param {import('blazar-enforcement/skypilot').PolicyServices} services
   */
  constructor({ url, token, timeout, pollPause = 0.25 }, services) {
    this.#url = url.replace(/\/+$/, '');
    this.#timeout = timeout;
    this.#pollPause = pollPause;
    this.#client = services.http.createClient({
      timeout,
      connectRetries: 1,
      breakerFailures: 0,
      breakerCooldown: 0,
      maxAnswerBytes: MAX_ANSWER_BYTES,
      headers: token === '' ? {} : { authorization: `Bearer ${token}` },
    });
  }

  /**
   * The cluster with this name, whoever owns it; `undefined` if there is none. Throws on any error.
   *
   * @param {string} name
   * @param {import('blazar-enforcement').Call} call
   * @returns {Promise<Cluster | undefined>}
   */
  cluster(name, call) {
    return withinDeadline(this.#timeout, async (deadline) => {
      const signal = AbortSignal.any(
        call.signal === undefined ? [deadline.signal] : [deadline.signal, call.signal],
      );
      const records = recordsOf(await this.#result(await this.#begin(name, signal), signal));
      return records.find((record) => record.name === name);
    });
  }

  close() {
    return this.#client.close();
  }

  /**
   * @param {string} name
   * @param {AbortSignal} signal
   * @returns {Promise<string>} the id of the request
   */
  async #begin(name, signal) {
    const body = {
      cluster_names: [name],
      refresh: 'AUTO',
      all_users: true,
      include_credentials: false,
      include_handle: false,
    };
    const { status, headers = {} } = await this.#client.postJson(
      `${this.#url}/status`,
      JSON.stringify(body),
      {
        signal,
        answerHeaders: ID_HEADERS,
      },
    );
    if (status !== 200) {
      throw new Error(`expected 200 from the API server for POST /status, got ${status}`);
    }
    const id = ID_HEADERS.map((header) => headers[header]).find((value) => value !== undefined);
    if (id === undefined || !REQUEST_ID.test(id)) {
      throw new Error('the API server returned no usable id for POST /status');
    }
    return id;
  }

  /**
   * @param {string} id
   * @param {AbortSignal} signal
   * @returns {Promise<unknown>}
   */
  async #result(id, signal) {
    for (let poll = 1; poll <= MAX_POLLS; poll += 1) {
      const { status, body } = await this.#client.get(`${this.#url}/api/get?request_id=${id}`, { signal });
      if (status !== 200) {
        throw new Error(`expected 200 from the API server for GET /api/get, got ${status}`);
      }
      const result = parsed(resultSchema, body);
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

/**
 * @param {unknown} text
 * @returns {Cluster[]}
 */
function recordsOf(text) {
  return parsed(recordsSchema, text).map(({ autostop, ...record }) => ({
    ...record,
    autostop: autostop ?? -1,
  }));
}

/**
 * The error contains nothing of the response, which may hold credentials.
 *
 * @template {z.ZodType} Schema
 * @param {Schema} schema
 * @param {unknown} text
 * @returns {z.infer<Schema>}
 */
function parsed(schema, text) {
  try {
    return schema.parse(JSON.parse(String(text)));
  } catch {
    throw new Error('the response of the API server has an unknown form');
  }
}
