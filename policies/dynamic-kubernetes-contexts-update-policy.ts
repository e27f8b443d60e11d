import { z } from 'zod';
import type { Call, HttpClient } from '../src/index.ts';
import {
  AdminPolicy,
  bearerToken,
  type ContextRegistry,
  contextRegistryOf,
  FORERUNNERS,
  isMapping,
  kubeconfigContextsOf,
  MAX_CONTEXT_FILE_BYTES,
  MutatedUserRequest,
  namesOfUser,
  needsOneOf,
  PolicyRejected,
  type PolicyServices,
  textOfContextFile,
  type UserRequest,
} from '../src/skypilot/index.ts';

const options = z
  .object({
    dynamic_kubernetes_contexts_update_registry: z
      .string()
      // A path that looks like a URL is a mistyped URL, which may contain a key.
      .regex(/^(?:(?!https?[:/;]|.*:\/\/)[^?]+|https?:\/\/[^/?#@\s]+(?:[/?#]\S*)?)$/i)
      .refine((text) => !/^https?:/i.test(text) || URL.canParse(text), 'it is not a URL')
      .optional()
      .meta({
        description:
          'A file, or an http or https URL, that lists the contexts of each user, in YAML or JSON. It is read for every request.',
        url: true,
        expected: 'the path of a file or a URL without credentials',
      }),
    dynamic_kubernetes_contexts_update_registry_token: bearerToken(
      'Sent to that URL as Authorization: Bearer; empty = no such header.',
    ),
    dynamic_kubernetes_contexts_update_kubeconfig: z.string().default('~/.kube/config').meta({
      description: 'The kubeconfig of SkyPilot. Contexts that are not in it are not allowed.',
    }),
    dynamic_kubernetes_contexts_update_timeout: z.int().min(1).max(29).default(5).meta({
      description: 'Time limit for a response from the URL. Must be less than [skypilot] deadline.',
      unit: 'seconds',
    }),
  })
  .superRefine(
    needsOneOf('DynamicKubernetesContextsUpdatePolicy', 'dynamic_kubernetes_contexts_update_registry'),
  );

/**
 * Limits each user to the Kubernetes contexts that a registry grants: to the user, else to the workspace,
 * else to everyone. Contexts that are not in the kubeconfig are dropped. The kubeconfig is not changed.
 */
export class DynamicKubernetesContextsUpdatePolicy extends AdminPolicy<z.infer<typeof options>> {
  static override readonly options = options;
  static override readonly needs = ['thread'] as const;

  readonly #client: HttpClient;
  /** The registry ended with a line break when it was last read from its file. */
  #wasEnded = false;

  constructor(values: z.infer<typeof options>, services: PolicyServices) {
    super(values, services);
    const token = values.dynamic_kubernetes_contexts_update_registry_token;
    this.#client = services.http.createClient({
      timeout: values.dynamic_kubernetes_contexts_update_timeout,
      connectRetries: 1,
      breakerFailures: 0,
      breakerCooldown: 0,
      maxAnswerBytes: MAX_CONTEXT_FILE_BYTES,
      headers: token === '' ? {} : { authorization: `Bearer ${token}` },
    });
  }

  override async validateAndMutate(userRequest: UserRequest, call: Call): Promise<MutatedUserRequest> {
    const { task, skypilotConfig } = userRequest;
    const [registry, kubeconfig] = await Promise.all([
      this.#registryText(call).then(contextRegistryOf),
      textOfContextFile(this.options.dynamic_kubernetes_contexts_update_kubeconfig).then(
        kubeconfigContextsOf,
      ),
    ]);
    const granted = grantedTo(userRequest, registry);
    if (granted !== undefined) {
      const allowed = [...new Set(granted)].filter((context) => kubeconfig.has(context));
      if (allowed.length === 0) {
        throw noContext();
      }
      skypilotConfig.assign(['kubernetes', 'allowed_contexts'], allowed);
      limitWorkspaces(userRequest, allowed);
    }
    return new MutatedUserRequest(task, skypilotConfig);
  }

  override close(): Promise<void> {
    return this.#client.close();
  }

  async #registryText(call: Call): Promise<string> {
    const registry = this.options.dynamic_kubernetes_contexts_update_registry ?? '';
    if (!/^https?:/i.test(registry)) {
      const text = await textOfContextFile(registry);
      const isEnded = text.endsWith('\n');
      // What is left of it could grant more: users without an entry have the contexts of everyone.
      if (this.#wasEnded && !isEnded) {
        throw new Error(`${registry}: no longer ends with a line break, so it was most likely cut off`);
      }
      this.#wasEnded = isEnded;
      return text;
    }
    const { status, body } = await this.#client.get(registry, call);
    if (status !== 200) {
      throw new Error(`expected 200 from the registry of Kubernetes contexts, got ${status}`);
    }
    return body;
  }
}

function noContext(): PolicyRejected {
  return new PolicyRejected('No Kubernetes context is available to you: ask the operator for access to one.');
}

/** SkyPilot takes the list of the workspace, if it has one, instead of the general list: only what is in both stays. */
function limitWorkspaces(
  { skypilotConfig: config, requestName }: UserRequest,
  allowed: readonly string[],
): void {
  const workspaces = config.getNested(['workspaces']);
  const active = config.getNested(['active_workspace']) ?? (FORERUNNERS.has(requestName) ? null : 'default');
  for (const name of Object.keys(isMapping(workspaces) ? workspaces : {})) {
    const path = ['workspaces', name, 'kubernetes', 'allowed_contexts'];
    const own = config.getNested(path);
    const both = Array.isArray(own) ? allowed.filter((context) => own.includes(context)) : allowed;
    if (both.length === 0 && name === active) {
      throw noContext();
    }
    if (own !== undefined && own !== null) {
      config.assign(path, both);
    }
  }
}

/** The contexts granted to the user; `undefined` = unknown yet: SkyPilot calls again when it is known. */
function grantedTo(
  { user, atClientSide, requestName, skypilotConfig }: UserRequest,
  { users, workspaces, default: everyones }: ContextRegistry,
): readonly string[] | undefined {
  if (user === null && Object.keys(users).length > 0) {
    if (atClientSide) {
      return undefined;
    }
    throw new Error('SkyPilot sent no user, so the allowed contexts are not known');
  }
  const named = user === null ? undefined : namesOfUser(user).find((name) => Object.hasOwn(users, name));
  const own = named === undefined ? undefined : entry(users, named);
  if (own !== undefined) {
    return own;
  }
  const workspace = skypilotConfig.getNested(['active_workspace']);
  if (typeof workspace !== 'string' && FORERUNNERS.has(requestName) && Object.keys(workspaces).length > 0) {
    return undefined;
  }
  return entry(workspaces, typeof workspace === 'string' ? workspace : 'default') ?? everyones;
}

function entry(
  entries: Readonly<Record<string, readonly string[]>>,
  name: string,
): readonly string[] | undefined {
  return Object.hasOwn(entries, name) ? entries[name] : undefined;
}
