import { hash, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import {
  allow,
  allowOnError,
  BaseFilter,
  type Call,
  type Context,
  deliveryOf,
  type EndMessage,
  type FilterServices,
  type HttpAnswer,
  type HttpClient,
  type Lease,
  type Outbox,
  RETRY_AFTER,
  reject,
  type Verdict,
  withKeystoneToken,
} from '../src/index.ts';

/** How much of the body of an unusable answer is logged. */
const LOGGED_CHARACTERS = 500;
const MAX_MESSAGE_LENGTH = 2000;
const DENIED_MESSAGE = 'The external service denied the request.';

/** Needs a host, as in Blazar. No credentials: the URL is shown in logs and messages. */
const endpoint = z
  .url({ protocol: /^https?$/ })
  .regex(/^https?:\/\/[^/?#@\s]+(?:[/?#][^\s]*)?$/i)
  .optional();
const expectedUrl = 'an http or https URL with a host and without credentials';
/** Only characters that are valid in a header. */
const token = z
  .string()
  .regex(/^[\x20-\x7e]*$/)
  .default('');
const expectedToken = 'ASCII text without line breaks';

const options = z
  .object({
    external_service_base_endpoint: endpoint.meta({
      serverOnly: true,
      description:
        'The base URL of the external service. check-create, check-update and on-end are appended to its path.',
      expected: expectedUrl,
    }),
    external_service_check_create_endpoint: endpoint.meta({
      serverOnly: true,
      description:
        'The URL to call when a lease is created. Overrides the one derived from the base endpoint.',
      expected: expectedUrl,
    }),
    external_service_check_update_endpoint: endpoint.meta({
      serverOnly: true,
      description:
        'The URL to call when a lease is updated. Overrides the one derived from the base endpoint.',
      expected: expectedUrl,
    }),
    external_service_on_end_endpoint: endpoint.meta({
      serverOnly: true,
      description:
        'The URL to call when a lease has ended. Overrides the one derived from the base endpoint.',
      expected: expectedUrl,
    }),
    external_service_commit_create_endpoint: endpoint.meta({
      serverOnly: true,
      description:
        'The URL to call to record a new lease, after every filter has allowed it. Not derived from the base endpoint; not set = no call.',
      expected: expectedUrl,
    }),
    external_service_commit_update_endpoint: endpoint.meta({
      serverOnly: true,
      description:
        'The URL to call to record a change of a lease, after every filter has allowed it. Not derived from the base endpoint; not set = no call.',
      expected: expectedUrl,
    }),
    external_service_token: token.meta({
      serverOnly: true,
      description: 'Sent in the header X-Auth-Token. Empty = the header is not sent.',
      secret: true,
      expected: expectedToken,
    }),
    external_service_auth: z.enum(['token', 'keystone']).default('token').meta({
      serverOnly: true,
      description:
        'What is sent in the header X-Auth-Token. token: external_service_token. keystone: a token of the account in [keystone], which is renewed.',
    }),
    external_service_bearer_token: token.meta({
      serverOnly: true,
      description: 'Sent in the header Authorization, as a bearer token. Empty = the header is not sent.',
      secret: true,
      expected: expectedToken,
    }),
    external_service_timeout: z.int().min(1).max(3600).default(10).meta({
      serverOnly: true,
      description: 'Maximum duration of a call, from connecting to the last byte of the answer.',
      unit: 'seconds',
    }),
    external_service_connect_retries: z.int().min(0).max(10).default(1).meta({
      serverOnly: true,
      description:
        'How often to retry a call that could not connect, within its timeout. Calls that were sent are not retried.',
    }),
    external_service_delivery: z.enum(['direct', 'durable']).default('direct').meta({
      serverOnly: true,
      description:
        'How on-end reaches the service. direct: one call, which is lost if it fails. durable: through the outbox in the ledger, again and again until it is answered with 204; also undoes commits.',
    }),
    external_service_delivery_max_age: z.int().min(60).max(31_536_000).default(604_800).meta({
      serverOnly: true,
      description:
        'How long durable delivery of an on-end is tried. After that it is dead: it stays in the outbox, until an operator retries or discards it.',
      unit: 'seconds',
    }),
    external_service_breaker_failures: z.int().min(0).default(5).meta({
      serverOnly: true,
      description:
        'After this many failures in a row, calls fail immediately until the cooldown is over. 0 = never.',
    }),
    external_service_breaker_cooldown: z.int().min(1).default(10).meta({
      serverOnly: true,
      description: 'How long calls fail immediately before one call tries the service again.',
      unit: 'seconds',
    }),
    external_service_allow_on_error: z.boolean().default(false).meta({
      serverOnly: true,
      description:
        'Allow leases while the service fails, and log a warning for each of them. Do not use it for limits that must hold. A commit that fails always refuses the lease.',
    }),
    external_service_message_fields: z.array(z.string()).default(['message']).meta({
      serverOnly: true,
      description: 'The fields of a 403 answer to search for the reason, in this order.',
    }),
    external_service_ca_file: z.string().optional().meta({
      serverOnly: true,
      description:
        'CA certificates that the certificate of the service is verified with, in PEM. Not set = the ones that Node.js trusts.',
      file: true,
      expected: 'the path of a file',
    }),
    external_service_client_cert_file: z.string().optional().meta({
      serverOnly: true,
      description: 'The client certificate to present to the service, in PEM.',
      file: true,
      expected: 'the path of a file',
    }),
    external_service_client_key_file: z.string().optional().meta({
      serverOnly: true,
      description: 'The key of the client certificate, in PEM.',
      file: true,
      secretFile: true,
      expected: 'the path of a file',
    }),
  })
  .superRefine((values, check) => {
    const endpoints = [
      'base',
      'check_create',
      'check_update',
      'on_end',
      'commit_create',
      'commit_update',
    ] as const;
    if (endpoints.every((name) => values[`external_service_${name}_endpoint`] === undefined)) {
      check.addIssue({
        code: 'custom',
        message:
          'ExternalServiceFilter needs external_service_base_endpoint or another of its endpoints, and none is set',
      });
    }
    if (values.external_service_auth === 'keystone' && values.external_service_token !== '') {
      check.addIssue({
        code: 'custom',
        path: ['external_service_auth'],
        message: 'expected no external_service_token beside "keystone", got one',
      });
    }
    if (
      values.external_service_delivery === 'durable' &&
      (values.external_service_base_endpoint ?? values.external_service_on_end_endpoint) === undefined
    ) {
      check.addIssue({
        code: 'custom',
        path: ['external_service_delivery'],
        message: 'durable needs external_service_base_endpoint or external_service_on_end_endpoint',
      });
    }
    if (
      (values.external_service_client_cert_file === undefined) !==
      (values.external_service_client_key_file === undefined)
    ) {
      const set = values.external_service_client_cert_file === undefined ? 'key' : 'cert';
      check.addIssue({
        code: 'custom',
        path: [`external_service_client_${set}_file`],
        message:
          'expected external_service_client_cert_file and external_service_client_key_file together, got one of them',
      });
    }
  });

type Options = z.infer<typeof options>;

/** Calls an external service over HTTP: 204 allows, 403 rejects with the reason in its body, every other answer is a failure. */
export class ExternalServiceFilter extends BaseFilter<Options> {
  static override readonly options = options;
  static override readonly needsKeystone = (values: Options): keyof Options | undefined =>
    values.external_service_auth === 'keystone' ? 'external_service_auth' : undefined;
  static override readonly limitsNothing = (values: z.infer<typeof options>): string | undefined => {
    const { external_service_base_endpoint: base } = values;
    const isCalled = (operation: 'create' | 'update') =>
      (base ?? values[`external_service_check_${operation}_endpoint`]) !== undefined ||
      values[`external_service_commit_${operation}_endpoint`] !== undefined;
    const unlimited = (['create', 'update'] as const).filter((operation) => !isCalled(operation));
    return unlimited.length === 0
      ? undefined
      : `calls no service for ${unlimited.join(' and ')}: set external_service_base_endpoint, or ${unlimited
          .map((operation) => `external_service_check_${operation}_endpoint`)
          .join(' and ')}`;
  };

  static override readonly needsLedger = (values: Options): boolean =>
    values.external_service_delivery === 'durable';

  readonly #client: HttpClient;
  readonly #checkCreateUrl: string | undefined;
  readonly #checkUpdateUrl: string | undefined;
  readonly #onEndUrl: string | undefined;
  /** `undefined` = ends are sent directly. */
  #outbox: Outbox | undefined;
  /** Origins of services that send a body with a 204: one warning for each. */
  readonly #warnedOf = new Set<string>();
  /** Left out without an endpoint, so that the chain does not take the lease for recorded. */
  override readonly commitCreate?: NonNullable<BaseFilter['commitCreate']>;
  override readonly commitUpdate?: NonNullable<BaseFilter['commitUpdate']>;

  constructor(values: Options, services: FilterServices) {
    super(values, services);
    const base = values.external_service_base_endpoint;
    this.#checkCreateUrl = values.external_service_check_create_endpoint ?? appended(base, 'check-create');
    this.#checkUpdateUrl = values.external_service_check_update_endpoint ?? appended(base, 'check-update');
    this.#onEndUrl = values.external_service_on_end_endpoint ?? appended(base, 'on-end');
    const {
      external_service_commit_create_endpoint: commitCreateUrl,
      external_service_commit_update_endpoint: commitUpdateUrl,
    } = values;
    if (commitCreateUrl !== undefined) {
      this.commitCreate = async (context, lease, call) => {
        await this.#outbox?.prepare(endMessage(context, lease), call);
        return this.#commit(commitCreateUrl, { context, lease }, keyed(call));
      };
    }
    if (commitUpdateUrl !== undefined) {
      this.commitUpdate = (context, currentLease, lease, call) =>
        this.#commit(commitUpdateUrl, { context, current_lease: currentLease, lease }, call);
    }
    const client = services.http.createClient({
      timeout: values.external_service_timeout,
      connectRetries: values.external_service_connect_retries,
      breakerFailures: values.external_service_breaker_failures,
      breakerCooldown: values.external_service_breaker_cooldown,
      headers: authentication(values),
      tls: {
        ca: contents(values.external_service_ca_file),
        cert: contents(values.external_service_client_cert_file),
        key: contents(values.external_service_client_key_file),
      },
    });
    this.#client =
      values.external_service_auth === 'keystone' ? withKeystoneToken(client, services.keystone) : client;
  }

  checkCreate(context: Context, lease: Lease, call: Call): Verdict | Promise<Verdict> {
    return this.#check(this.#checkCreateUrl, { context, lease }, keyed(call));
  }

  checkUpdate(
    context: Context,
    currentLease: Lease,
    newLease: Lease,
    call: Call,
  ): Verdict | Promise<Verdict> {
    return this.#check(this.#checkUpdateUrl, { context, current_lease: currentLease, lease: newLease }, call);
  }

  async onEnd(context: Context, lease: Lease, call: Call): Promise<void> {
    if (this.#outbox !== undefined) {
      await this.#outbox.add(endMessage(context, lease), call);
    } else if (this.#onEndUrl !== undefined) {
      const answer = await this.#post(this.#onEndUrl, { context, lease }, call);
      if (answer.status !== 204) {
        throw this.#unusable(answer);
      }
    }
  }

  override async open(): Promise<void> {
    const { external_service_delivery: delivery, external_service_delivery_max_age: maxAge } = this.options;
    const url = this.#onEndUrl;
    if (delivery === 'durable' && url !== undefined) {
      this.#outbox = await this.services.outbox.open({
        name: 'ExternalServiceFilter',
        maxAge,
        deliver: ({ key, body }, signal) => deliveryOf(() => this.#post(url, body, { signal, key })),
      });
    }
  }

  override close(): Promise<void> {
    return this.#client.close();
  }

  #check(url: string | undefined, body: object, call: KeyedCall): Verdict | Promise<Verdict> {
    return url === undefined ? allow() : this.#ask(url, body, call);
  }

  /** Ignores allow_on_error: a lease that the service has not recorded would never be paid for. */
  async #commit(url: string, body: object, call: KeyedCall): Promise<Verdict> {
    return this.#verdict(await this.#post(url, body, call));
  }

  async #ask(url: string, body: object, call: KeyedCall): Promise<Verdict> {
    try {
      return this.#verdict(await this.#post(url, body, call));
    } catch (thrown) {
      // If the caller has stopped waiting, the service has not failed, and the answer allows nothing.
      if (!this.options.external_service_allow_on_error || call.signal?.aborted) {
        throw thrown;
      }
      const error = thrown instanceof Error ? thrown.message : String(thrown);
      this.services.logger.warn(
        { filter: 'ExternalServiceFilter', error },
        'allowed on error: the external service failed',
      );
      return allowOnError();
    }
  }

  /** `body`: text is sent as it is. */
  async #post(url: string, body: object | string, { signal, key }: KeyedCall): Promise<HttpAnswer> {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const headers = key === undefined ? {} : { 'idempotency-key': keyOf(key, text) };
    const answer = await this.#client.postJson(url, text, { signal, headers, answerHeaders: [RETRY_AFTER] });
    const { origin } = new URL(url);
    if (answer.bodyDropped === true && !this.#warnedOf.has(origin)) {
      this.#warnedOf.add(origin);
      this.services.logger.warn(
        { filter: 'ExternalServiceFilter', service: origin },
        'the external service sends a body with a 204, which HTTP forbids: the body is ignored, and each call needs a new connection',
      );
    }
    return answer;
  }

  #verdict(answer: HttpAnswer): Verdict {
    if (answer.status === 204) {
      return allow();
    }
    if (answer.status === 403) {
      return reject(this.#reason(answer) ?? DENIED_MESSAGE);
    }
    throw this.#unusable(answer);
  }

  /** The text of the first message field that has one. The rest of a 403 may leak something: it is only logged. */
  #reason(answer: HttpAnswer): string | undefined {
    const fields = jsonObject(answer.body);
    for (const name of this.options.external_service_message_fields) {
      const text = fields !== undefined && Object.hasOwn(fields, name) ? fields[name] : undefined;
      if (typeof text === 'string' && text.trim() !== '') {
        // Shortened last, because a token that is cut off would not be found.
        return this.#withoutTokens(printable(text)).slice(0, MAX_MESSAGE_LENGTH);
      }
    }
    this.#logBody(answer, 'the external service denied without a usable message');
    return undefined;
  }

  #unusable(answer: HttpAnswer): Error {
    this.#logBody(answer, 'the external service gave an unexpected answer');
    return new Error(`expected 204 or 403 from the external service, got ${answer.status}`);
  }

  #logBody({ status, body }: HttpAnswer, line: string): void {
    const start = this.#withoutTokens(body).slice(0, LOGGED_CHARACTERS);
    this.services.logger.debug({ filter: 'ExternalServiceFilter', status, body: start }, line);
  }

  /** A broken service may echo the request. */
  #withoutTokens(text: string): string {
    const { external_service_token: token, external_service_bearer_token: bearer } = this.options;
    return [token, bearer]
      .filter((secret) => secret !== '')
      .reduce((rest, secret) => rest.replaceAll(secret, '****'), text);
  }
}

interface KeyedCall extends Call {
  /** `undefined` for an update: repeating it changes nothing. */
  readonly key?: string;
}

function keyed({ signal, requestKey = randomUUID() }: Call): KeyedCall {
  return { signal, key: requestKey };
}

/**
 * The same for all checks and commits of one lease in one request, and different for every other lease or request. A service that
 * records what it allows then counts the lease once, and counts requests that only look alike separately.
 */
function keyOf(requestKey: string, body: string): string {
  return hash('sha256', JSON.stringify([requestKey, body]), 'base64url');
}

function endMessage(context: Context, lease: Lease): EndMessage {
  return { context, lease, body: JSON.stringify({ context, lease }) };
}

/** Appends to the path, whether or not the base ends in a slash. */
function appended(base: string | undefined, name: string): string | undefined {
  if (base === undefined) {
    return undefined;
  }
  const url = new URL(base);
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/${name}`;
  return url.href;
}

function authentication(values: Options): Record<string, string> {
  const { external_service_token: token, external_service_bearer_token: bearer } = values;
  return {
    ...(token === '' ? {} : { 'X-Auth-Token': token }),
    ...(bearer === '' ? {} : { Authorization: `Bearer ${bearer}` }),
  };
}

function contents(file: string | undefined): Buffer | undefined {
  return file === undefined ? undefined : readFileSync(file);
}

function jsonObject(body: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** On one line, without control characters. */
function printable(text: string): string {
  return text.replace(/\p{Cc}+/gu, ' ').trim();
}
