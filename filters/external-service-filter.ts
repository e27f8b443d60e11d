import { z } from 'zod';
import {
  allow,
  allowOnError,
  BaseFilter,
  type Call,
  type Context,
  deliveryOf,
  type EndMessage,
  endpointBelow,
  endpointOption,
  type FilterServices,
  type KeyedCall,
  keyed,
  type Lease,
  maxAgeOption,
  type OptionsCheck,
  type Outbox,
  type Problem,
  pemFileOption,
  requireCertificateWithKey,
  ServiceAnswers,
  ServiceCalls,
  timeoutOption,
  tlsFrom,
  tokenHeaders,
  tokenOption,
  type Verdict,
  withKeystoneToken,
} from '../src/index.ts';

const options = z
  .object({
    external_service_base_endpoint: endpointOption(
      'The base URL of the external service. check-create, check-update and on-end are appended to its path.',
    ),
    external_service_check_create_endpoint: endpointOption(
      'The URL to call when a lease is created. Overrides the one derived from the base endpoint.',
    ),
    external_service_check_update_endpoint: endpointOption(
      'The URL to call when a lease is updated. Overrides the one derived from the base endpoint.',
    ),
    external_service_on_end_endpoint: endpointOption(
      'The URL to call when a lease has ended. Overrides the one derived from the base endpoint.',
    ),
    external_service_commit_create_endpoint: endpointOption(
      'The URL to call to record a new lease, after every filter has allowed it. Not derived from the base endpoint; not set = no call.',
    ),
    external_service_commit_update_endpoint: endpointOption(
      'The URL to call to record a change of a lease, after every filter has allowed it. Not derived from the base endpoint; not set = no call.',
    ),
    external_service_token: tokenOption('Sent in the header X-Auth-Token. Empty = the header is not sent.'),
    external_service_auth: z.enum(['token', 'keystone']).default('token').meta({
      serverOnly: true,
      description:
        'What is sent in the header X-Auth-Token. token: external_service_token. keystone: a token of the account in [keystone], which is renewed.',
    }),
    external_service_bearer_token: tokenOption(
      'Sent in the header Authorization, as a bearer token. Empty = the header is not sent.',
    ),
    external_service_timeout: timeoutOption(
      'Maximum duration of a call, from connecting to the last byte of the answer. Must be less than [service] deadline, and than half of it in audit_filters.',
    ),
    external_service_connect_retries: z.int().min(0).max(10).default(1).meta({
      serverOnly: true,
      description:
        'How often to retry a call that could not connect, within its timeout. Calls that were sent are not retried.',
    }),
    external_service_delivery: z.enum(['direct', 'durable']).default('direct').meta({
      serverOnly: true,
      description:
        'How on-end reaches the service. direct: one call, which is lost if it fails. durable: through the outbox in the ledger, retried until it is answered with 204; also undoes commits.',
    }),
    external_service_delivery_max_age: maxAgeOption(
      'How long durable delivery of an on-end is tried. After that it is dead: it stays in the outbox, until an operator retries or discards it.',
    ),
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
        'Allow leases while the service fails (no answer, or a status of 500 or more), and log a warning for each of them. Do not use it for limits that must hold. A commit that fails always refuses the lease.',
    }),
    external_service_message_fields: z.array(z.string()).default(['message']).meta({
      serverOnly: true,
      description: 'The fields of a 403 answer to search for the reason, in this order.',
    }),
    external_service_ca_file: pemFileOption(
      'CA certificates that the certificate of the service is verified with, in PEM. Not set = the ones that Node.js trusts.',
    ),
    external_service_client_cert_file: pemFileOption(
      'The client certificate to present to the service, in PEM.',
    ),
    external_service_client_key_file: pemFileOption('The key of the client certificate, in PEM.', true),
  })
  .superRefine((values, check) => {
    const refuse = (message: string, ...path: string[]) => check.addIssue({ code: 'custom', path, message });
    const endpoints = Object.entries(values).filter(([name]) => name.endsWith('_endpoint'));
    if (endpoints.every(([, url]) => url === undefined)) {
      refuse(
        'ExternalServiceFilter needs external_service_base_endpoint or another of its endpoints, and none is set',
      );
    }
    if (values.external_service_auth === 'keystone' && values.external_service_token !== '') {
      refuse('expected no external_service_token beside "keystone", got one', 'external_service_auth');
    }
    if (
      values.external_service_delivery === 'durable' &&
      (values.external_service_base_endpoint ?? values.external_service_on_end_endpoint) === undefined
    ) {
      refuse(
        'durable needs external_service_base_endpoint or external_service_on_end_endpoint',
        'external_service_delivery',
      );
    }
    requireCertificateWithKey(values, 'external_service', check);
  });

type Options = z.infer<typeof options>;

/**
 * Calls an external service over HTTP: 204 allows, 403 rejects with the reason in its body, any other answer
 * is a failure.
 */
export class ExternalServiceFilter extends BaseFilter<Options> {
  static override readonly options = options;
  static override readonly check = timeoutProblems;
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

  readonly #service: ServiceCalls;
  readonly #answers: ServiceAnswers;
  readonly #checkCreateUrl: string | undefined;
  readonly #checkUpdateUrl: string | undefined;
  readonly #onEndUrl: string | undefined;
  /** `undefined` = ends are sent directly. */
  #outbox: Outbox | undefined;
  /** Missing without an endpoint, so that the chain does not assume that the lease was recorded. */
  override readonly commitCreate?: NonNullable<BaseFilter['commitCreate']>;
  override readonly commitUpdate?: NonNullable<BaseFilter['commitUpdate']>;

  constructor(values: Options, services: FilterServices) {
    super(values, services);
    const base = values.external_service_base_endpoint;
    this.#checkCreateUrl =
      values.external_service_check_create_endpoint ?? endpointBelow(base, 'check-create');
    this.#checkUpdateUrl =
      values.external_service_check_update_endpoint ?? endpointBelow(base, 'check-update');
    this.#onEndUrl = values.external_service_on_end_endpoint ?? endpointBelow(base, 'on-end');
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
    this.#answers = new ServiceAnswers({
      filter: 'ExternalServiceFilter',
      logger: services.logger,
      messageFields: values.external_service_message_fields,
      secrets: [values.external_service_token, values.external_service_bearer_token],
    });
    const client = services.http.createClient({
      timeout: values.external_service_timeout,
      connectRetries: values.external_service_connect_retries,
      breakerFailures: values.external_service_breaker_failures,
      breakerCooldown: values.external_service_breaker_cooldown,
      headers: tokenHeaders(values.external_service_token, values.external_service_bearer_token),
      tls: tlsFrom(
        values.external_service_ca_file,
        values.external_service_client_cert_file,
        values.external_service_client_key_file,
      ),
    });
    this.#service = new ServiceCalls(
      values.external_service_auth === 'keystone' ? withKeystoneToken(client, services.keystone) : client,
      'ExternalServiceFilter',
      services.logger,
    );
  }

  checkCreate(context: Context, lease: Lease, call: Call): Promise<Verdict> {
    return this.#check(this.#checkCreateUrl, { context, lease }, keyed(call));
  }

  checkUpdate(context: Context, currentLease: Lease, newLease: Lease, call: Call): Promise<Verdict> {
    return this.#check(this.#checkUpdateUrl, { context, current_lease: currentLease, lease: newLease }, call);
  }

  async onEnd(context: Context, lease: Lease, call: Call): Promise<void> {
    if (this.#outbox === undefined) {
      await this.#sendEnd({ context, lease }, call);
      return;
    }
    try {
      await this.#outbox.add(endMessage(context, lease), call);
    } catch (thrown) {
      // The outbox already has the message that undoes a commit. Any other end would be lost: Blazar does not
      // repeat it.
      if (call.undoes !== undefined) {
        throw thrown;
      }
      const error = textOf(thrown);
      await this.#sendEnd({ context, lease }, call).catch((direct: unknown) => {
        throw new Error(`${error}; sent directly: ${textOf(direct)}`, { cause: thrown });
      });
      this.services.logger.warn(
        { filter: 'ExternalServiceFilter', error },
        'the outbox cannot be written: the end of a lease was sent directly',
      );
    }
  }

  async #sendEnd(body: object, call: Call): Promise<void> {
    if (this.#onEndUrl !== undefined) {
      const answer = await this.#service.post(this.#onEndUrl, body, call);
      if (answer.status !== 204) {
        throw this.#answers.unusable(answer);
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
        deliver: ({ key, body }, signal) => deliveryOf(() => this.#service.post(url, body, { signal, key })),
      });
    }
  }

  override close(): Promise<void> {
    return this.#service.close();
  }

  /** Ignores allow_on_error: a lease that the service has not recorded would never be charged. */
  async #commit(url: string, body: object, call: KeyedCall): Promise<Verdict> {
    return this.#answers.verdict(await this.#service.post(url, body, call));
  }

  async #check(url: string | undefined, body: object, call: KeyedCall): Promise<Verdict> {
    if (url === undefined) {
      return allow();
    }
    let status: number | undefined;
    try {
      const answer = await this.#service.post(url, body, call);
      status = answer.status;
      return this.#answers.verdict(answer);
    } catch (thrown) {
      // As for the circuit breaker, the service has not failed if the caller has stopped waiting, nor with a status
      // below 500: a user can make a request that the service answers with 400 or 413.
      const hasFailed = !call.signal?.aborted && (status === undefined || status >= 500);
      if (!this.options.external_service_allow_on_error || !hasFailed) {
        throw thrown;
      }
      const error = textOf(thrown);
      this.services.logger.warn(
        { filter: 'ExternalServiceFilter', error },
        'allowed on error: the external service failed',
      );
      return allowOnError();
    }
  }
}

/**
 * At the deadline, a call is aborted: it neither counts as a failure of the service nor allows on error. An audited
 * filter has half of the time.
 */
function timeoutProblems(
  { external_service_timeout: timeout }: Options,
  settings: Parameters<OptionsCheck>[1] = [],
): Problem[] {
  const setting = (section: string, name: string) =>
    settings.find(({ option }) => option.section === section && option.name === name);
  const deadline = setting('service', 'deadline');
  const audited = setting('enforcement', 'audit_filters')?.value;
  const isAudited = Array.isArray(audited) && audited.includes('ExternalServiceFilter');
  if (typeof deadline?.value !== 'number' || timeout < deadline.value / (isAudited ? 2 : 1)) {
    return [];
  }
  const place =
    deadline.origin.kind === 'default'
      ? { section: 'enforcement', option: 'external_service_timeout' }
      : { section: 'service', option: 'deadline' };
  const message = `external_service_timeout, ${timeout} seconds, is not less than ${isAudited ? 'half of ' : ''}[service] deadline, ${deadline.value}: if the service hangs, external_service_allow_on_error allows nothing, and external_service_breaker_failures may not count the call`;
  return [{ severity: 'warning', ...place, message }];
}

function endMessage(context: Context, lease: Lease): EndMessage {
  return { context, lease, body: JSON.stringify({ context, lease }) };
}

function textOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
