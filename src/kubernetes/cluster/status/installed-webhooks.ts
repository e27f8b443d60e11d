/**
 * What API servers would not ask the service about: webhook configurations that were deleted, or changed by hand so
 * that they ask about less than the ones that were installed. Those are read from files, anew at every look.
 */
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { ConfigurationError, errorText, type Problem } from '../../../base/errors.ts';
import type { Logger } from '../../../base/logger.ts';
import { readItems } from '../../policies/documents/items.ts';
import { type ApiClient, parsedAs, unlessMissing } from '../api/contract.ts';
import { CLOCK } from '../api/timing.ts';

const FOLDER = '/apis/admissionregistration.k8s.io/v1';

const service = z.object({ namespace: z.string(), name: z.string() });
/** Without what may differ: the token in the path, authorities. With the defaults of v1. */
const webhookSchema = z.object({
  name: z.string(),
  clientConfig: z
    .object({ service: service.nullish() })
    .transform((client) => (client.service ? `${client.service.namespace}/${client.service.name}` : 'a URL')),
  rules: z.array(z.looseObject({ scope: z.string().default('*') })).default([]),
  failurePolicy: z.string().default('Fail'),
  matchPolicy: z.string().default('Equivalent'),
  timeoutSeconds: z.number().default(10),
  namespaceSelector: z.looseObject({}).default({}),
  objectSelector: z.looseObject({}).default({}),
  matchConditions: z.array(z.looseObject({})).default([]),
});
const storedSchema = z.object({ webhooks: z.array(webhookSchema).default([]) });
const configurationSchema = storedSchema.extend({
  kind: z.enum(['MutatingWebhookConfiguration', 'ValidatingWebhookConfiguration']),
  metadata: z.object({ name: z.string().min(1) }),
});

type Webhook = z.infer<typeof webhookSchema>;
type Configuration = z.infer<typeof configurationSchema>;

/** With these, API servers ask about everything. Kubernetes before 1.27 has no `matchConditions`. */
const MOST: Readonly<Partial<Webhook>> = {
  failurePolicy: 'Fail',
  matchPolicy: 'Equivalent',
  namespaceSelector: {},
  objectSelector: {},
  matchConditions: [],
};

function asksAsMuch(field: keyof Webhook, has: Webhook, installed: Webhook): boolean {
  return (
    [installed[field], MOST[field]].some((value) => isDeepStrictEqual(has[field], value)) ||
    (field === 'timeoutSeconds' && has.timeoutSeconds > installed.timeoutSeconds)
  );
}

/** Never throws. */
export function readInstalled(paths: readonly string[]): {
  readonly configurations: readonly Configuration[];
  readonly problems: readonly Problem[];
} {
  const problems: Problem[] = [];
  const configurations = readItems(paths, (problem) => problems.push(problem)).flatMap((item) => {
    const { data, error } = configurationSchema.safeParse(item.value);
    for (const { path, message } of error?.issues ?? []) {
      problems.push(item.problem(path as (string | number)[], message));
    }
    return data ?? [];
  });
  return { configurations, problems };
}

/** A sentence for each webhook and field. @throws ApiError @throws ApiUnreachableError */
async function differences(
  client: ApiClient,
  { kind, metadata, webhooks }: Configuration,
): Promise<string[]> {
  const path = `${FOLDER}/${kind.toLowerCase()}s/${encodeURIComponent(metadata.name)}`;
  const answer = await client.request({ method: 'GET', path }).catch(unlessMissing);
  if (answer === undefined) {
    return [`${kind} ${metadata.name} is missing`];
  }
  const { webhooks: there } = parsedAs('webhook configuration', storedSchema, answer);
  return webhooks.flatMap((installed) => {
    const has = there.find(({ name }) => name === installed.name);
    if (has === undefined) {
      return [`${kind} ${metadata.name}: ${installed.name} is missing`];
    }
    return webhookSchema
      .keyof()
      .options.filter((field) => !asksAsMuch(field, has, installed))
      .map((field) => `${installed.name}: ${field} is ${JSON.stringify(has[field]).slice(0, 200)}`);
  });
}

async function found(client: ApiClient, paths: readonly string[]): Promise<string[]> {
  const { configurations, problems } = readInstalled(paths);
  if (problems.length > 0) {
    throw new ConfigurationError(problems);
  }
  return (await Promise.all(configurations.map((one) => differences(client, one)))).flat();
}

const INTERVAL_MS = 30_000;

interface WebhookWatchOptions {
  readonly client: ApiClient;
  /** Of `installed_webhooks`. */
  readonly paths: readonly string[];
  /** What API servers would not ask about, after every look. */
  readonly looked: (notAsked: readonly string[]) => void;
  readonly logger: Logger;
  readonly signal: AbortSignal;
  readonly intervalMs?: number;
}

/** Looks at once, and until the signal fires. Never throws. */
export async function watchWebhooks(options: WebhookWatchOptions): Promise<void> {
  const { client, paths, looked, logger, signal, intervalMs = INTERVAL_MS } = options;
  let reported = '';
  while (!signal.aborted) {
    const [error, notAsked] = await found(client, paths).then(
      (all) => ['', all] as const,
      (thrown: unknown) => [errorText(thrown), []] as const,
    );
    if (signal.aborted) {
      return;
    }
    if (error === '') {
      looked(notAsked);
    } else if (error !== reported) {
      logger.warn({ error }, 'whether API servers still ask about pods is not known');
    }
    reported = error;
    // Not all replicas at once.
    await CLOCK.sleep(intervalMs * (0.75 + Math.random() / 2), signal);
  }
}
