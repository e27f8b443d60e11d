import { hash, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import {
  allow,
  allowOnError,
  BaseFilter,
  type Call,
  type Context,
  type FilterServices,
  type HttpAnswer,
  type HttpClient,
  type Lease,
  reject,
  type Verdict,
} from '../src/index.ts';

/** Of the body of an answer that can't be used, so much goes to the log. */
const LOGGED_CHARACTERS = 500;
const MAX_MESSAGE_LENGTH = 2000;
const DENIED_MESSAGE = 'The external service denied the request.';

/** With a host, as Blazar asks; without credentials, which would stand in the clear wherever the URL is shown. */
const endpoint = z
  .url({ protocol: /^https?$/ })
  .regex(/^https?:\/\/[^/?#@\s]+(?:[/?#][^\s]*)?$/i)
  .optional();
const expectedUrl = 'an http or https URL with a host and without credentials';
/** What may stand in a header. */
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
        'Where the external service is. check-create, check-update and on-end are appended to its path.',
      expected: expectedUrl,
    }),
    external_service_check_create_endpoint: endpoint.meta({
      serverOnly: true,
      description:
        'The URL that is asked when a lease is created, instead of the one made from the base endpoint.',
      expected: expectedUrl,
    }),
    external_service_check_update_endpoint: endpoint.meta({
      serverOnly: true,
      description:
        'The URL that is asked when a lease is updated, instead of the one made from the base endpoint.',
      expected: expectedUrl,
    }),
    external_service_on_end_endpoint: endpoint.meta({
      serverOnly: true,
      description:
        'The URL that is told when a lease has ended, instead of the one made from the base endpoint.',
      expected: expectedUrl,
    }),
    external_service_commit_create_endpoint: endpoint.meta({
      serverOnly: true,
      description:
        'The URL that is asked to record a lease when every filter has allowed it. Never made from the base endpoint: not set = nobody is asked.',
      expected: expectedUrl,
    }),
    external_service_commit_update_endpoint: endpoint.meta({
      serverOnly: true,
      description:
        'The URL that is asked to record a change of a lease when every filter has allowed it. Never made from the base endpoint: not set = nobody is asked.',
      expected: expectedUrl,
    }),
    external_service_token: token.meta({
      serverOnly: true,
      description: 'Sent as X-Auth-Token; empty = no such header.',
      secret: true,
      expected: expectedToken,
    }),
    external_service_bearer_token: token.meta({
      serverOnly: true,
      description: 'Sent as Authorization: Bearer; empty = no such header.',
      secret: true,
      expected: expectedToken,
    }),
    external_service_timeout: z.int().min(1).max(3600).default(10).meta({
      serverOnly: true,
      description: 'How long a whole call may take, from connecting to the last byte of the answer.',
      unit: 'seconds',
    }),
    external_service_connect_retries: z.int().min(0).max(10).default(1).meta({
      serverOnly: true,
      description:
        'How often a call is tried again within its time when no connection came about, so that nothing was sent.',
    }),
    external_service_breaker_failures: z.int().min(0).default(5).meta({
      serverOnly: true,
      description:
        'After so many failures in a row calls fail at once, for the time of the cooldown. 0 = never.',
    }),
    external_service_breaker_cooldown: z.int().min(1).default(10).meta({
      serverOnly: true,
      description: 'How long the service is left alone before one call tries it again.',
      unit: 'seconds',
    }),
    external_service_allow_on_error: z.boolean().default(false).meta({
      serverOnly: true,
      description:
        'Allow leases while the service fails. Each of them is logged as a warning. Not for limits that must hold. A commit that fails always refuses the lease.',
    }),
    external_service_message_fields: z.array(z.string()).default(['message']).meta({
      serverOnly: true,
      description: 'The fields of a 403 answer in which the reason is looked for, in this order.',
    }),
    external_service_ca_file: z.string().optional().meta({
      serverOnly: true,
      description:
        'Certificates of the authorities that the service is trusted by, in PEM; not set = those of Node.',
      file: true,
      expected: 'the path of a file',
    }),
    external_service_client_cert_file: z.string().optional().meta({
      serverOnly: true,
      description: 'The certificate that is shown to the service, in PEM.',
      file: true,
      expected: 'the path of a file',
    }),
    external_service_client_key_file: z.string().optional().meta({
      serverOnly: true,
      description: 'The key of that certificate, in PEM.',
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

/** Asks a third party over HTTP: 204 allows, 403 rejects with its reason, everything else is a failure. */
export class ExternalServiceFilter extends BaseFilter<Options> {
  static override readonly options = options;
  static override readonly limitsNothing = (values: z.infer<typeof options>): string | undefined => {
    const { external_service_base_endpoint: base } = values;
    const asked = (operation: 'create' | 'update') =>
      (base ?? values[`external_service_check_${operation}_endpoint`]) !== undefined ||
      values[`external_service_commit_${operation}_endpoint`] !== undefined;
    const unasked = (['create', 'update'] as const).filter((operation) => !asked(operation));
    return unasked.length === 0
      ? undefined
      : `asks nobody about each ${unasked.join(' and ')}: set external_service_base_endpoint, or ${unasked
          .map((operation) => `external_service_check_${operation}_endpoint`)
          .join(' and ')}`;
  };

  readonly #client: HttpClient;
  readonly #checkCreateUrl: string | undefined;
  readonly #checkUpdateUrl: string | undefined;
  readonly #onEndUrl: string | undefined;
  /** Origins of services whose 204 has a body: each is told of once. */
  readonly #warnedOf = new Set<string>();
  /** Not there without an endpoint: what asks nobody must not be taken for told. */
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
      this.commitCreate = (context, lease, call) =>
        this.#commit(commitCreateUrl, { context, lease }, keyed(call));
    }
    if (commitUpdateUrl !== undefined) {
      this.commitUpdate = (context, currentLease, lease, call) =>
        this.#commit(commitUpdateUrl, { context, current_lease: currentLease, lease }, call);
    }
    this.#client = services.http.createClient({
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
    if (this.#onEndUrl !== undefined) {
      const answer = await this.#post(this.#onEndUrl, { context, lease }, call);
      if (answer.status !== 204) {
        throw this.#unusable(answer);
      }
    }
  }

  override close(): Promise<void> {
    return this.#client.close();
  }

  #check(url: string | undefined, body: object, call: KeyedCall): Verdict | Promise<Verdict> {
    return url === undefined ? allow() : this.#ask(url, body, call);
  }

  /** Whether allow_on_error is set does not matter: a lease that nobody has recorded would never be paid for. */
  async #commit(url: string, body: object, call: KeyedCall): Promise<Verdict> {
    return this.#verdict(await this.#post(url, body, call));
  }

  async #ask(url: string, body: object, call: KeyedCall): Promise<Verdict> {
    try {
      return this.#verdict(await this.#post(url, body, call));
    } catch (thrown) {
      // When nobody waits for the answer any longer, the service has not failed, and no lease would be allowed by it.
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

  async #post(url: string, body: object, { signal, key }: KeyedCall): Promise<HttpAnswer> {
    const text = JSON.stringify(body);
    const headers = key === undefined ? {} : { 'idempotency-key': keyOf(key, text) };
    const answer = await this.#client.postJson(url, text, { signal, headers });
    const { origin } = new URL(url);
    if (answer.bodyDropped === true && !this.#warnedOf.has(origin)) {
      this.#warnedOf.add(origin);
      this.services.logger.warn(
        { filter: 'ExternalServiceFilter', service: origin },
        'the external service sends a body with its 204, against HTTP: the body is ignored, and each call needs a new connection',
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

  /** The text of the first message field that has one. What else a 403 says may leak something: it is only logged. */
  #reason(answer: HttpAnswer): string | undefined {
    const fields = jsonObject(answer.body);
    for (const name of this.options.external_service_message_fields) {
      const text = fields !== undefined && Object.hasOwn(fields, name) ? fields[name] : undefined;
      if (typeof text === 'string' && text.trim() !== '') {
        // Shortened last: the beginning of a token that is cut off would not be found.
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

  /** A service that is broken enough may send back what it was sent. */
  #withoutTokens(text: string): string {
    const { external_service_token: token, external_service_bearer_token: bearer } = this.options;
    return [token, bearer]
      .filter((secret) => secret !== '')
      .reduce((rest, secret) => rest.replaceAll(secret, '****'), text);
  }
}

interface KeyedCall extends Call {
  /** `undefined` = an update: the same once more changes nothing. */
  readonly key?: string;
}

function keyed({ signal, requestKey = randomUUID() }: Call): KeyedCall {
  return { signal, key: requestKey };
}

/**
 * The same for one lease of one request, whether it is checked, checked again or recorded, and another for every other: a service
 * that records what it allows counts it once, and requests that only look alike each by themselves.
 */
function keyOf(requestKey: string, body: string): string {
  return hash('sha256', JSON.stringify([requestKey, body]), 'base64url');
}

/** Appended to the path, whether or not the base ends in a slash: what everyone means. */
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

/** On one line, and without what would steer a terminal. */
function printable(text: string): string {
  return text.replace(/\p{Cc}+/gu, ' ').trim();
}
