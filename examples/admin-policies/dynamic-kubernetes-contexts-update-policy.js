import { AdminPolicy, MutatedUserRequest, PolicyRejected } from 'blazar-enforcement/skypilot';
import { z } from 'zod';
import { contextsOf, MAX_BYTES, registryOf, textOfFile } from './kubernetes-contexts.js';

const options = z
  .object({
    dynamic_kubernetes_contexts_update_registry: z
      .string()
      .regex(/^(?:(?!https?:).+|https?:\/\/[^/?#@\s]+(?:[/?#]\S*)?)$/i)
      .optional()
      .meta({
        description:
          'A file, or an http or https URL, that lists the contexts of each user, in YAML or JSON. It is read for every request.',
        expected: 'the path of a file or a URL without credentials',
      }),
    dynamic_kubernetes_contexts_update_registry_token: z
      .string()
      .regex(/^[\x21-\x7e]*$/)
      .default('')
      .meta({
        description: 'Sent to that URL as Authorization: Bearer; empty = no such header.',
        secret: true,
        expected: 'ASCII text without spaces',
      }),
    dynamic_kubernetes_contexts_update_kubeconfig: z.string().default('~/.kube/config').meta({
      description: 'The kubeconfig of SkyPilot. Contexts that are not in it are not allowed.',
    }),
    dynamic_kubernetes_contexts_update_timeout: z.int().min(1).max(29).default(5).meta({
      description: 'Time limit for a response from the URL. Must be less than [skypilot] deadline.',
      unit: 'seconds',
    }),
  })
  .superRefine((values, check) => {
    if (values.dynamic_kubernetes_contexts_update_registry === undefined) {
      check.addIssue({
        code: 'custom',
        message:
          'DynamicKubernetesContextsUpdatePolicy needs dynamic_kubernetes_contexts_update_registry, and it is not set',
      });
    }
  });

/** These start nothing, and may lack the workspace of the launch that follows. */
const FIRST_QUESTIONS = new Set(['validate', 'optimize']);

/**
 * Limits each user to the Kubernetes contexts that a registry grants: to the user, otherwise to the workspace,
 * otherwise to everyone. Contexts that are not in the kubeconfig are left out. The kubeconfig is not changed.
 *
 * @extends {AdminPolicy<z.infer<typeof options>>}
 */
export class DynamicKubernetesContextsUpdatePolicy extends AdminPolicy {
  static options = options;

  #client;

  /**
   * @param {z.infer<typeof options>} values
   * @param {import('blazar-enforcement/skypilot').PolicyServices} services
   */
  constructor(values, services) {
    super(values, services);
    const token = values.dynamic_kubernetes_contexts_update_registry_token;
    this.#client = services.http.createClient({
      timeout: values.dynamic_kubernetes_contexts_update_timeout,
      connectRetries: 1,
      breakerFailures: 0,
      breakerCooldown: 0,
      maxAnswerBytes: MAX_BYTES,
      headers: token === '' ? {} : { authorization: `Bearer ${token}` },
    });
  }

  /**
   * @param {import('blazar-enforcement/skypilot').UserRequest} userRequest
   * @param {import('blazar-enforcement').Call} call
   */
  async validateAndMutate(userRequest, call) {
    const { task, skypilotConfig } = userRequest;
    const [registry, kubeconfig] = await Promise.all([
      this.#registryText(call).then(registryOf),
      textOfFile(this.options.dynamic_kubernetes_contexts_update_kubeconfig).then(contextsOf),
    ]);
    const granted = grantedTo(userRequest, registry);
    if (granted !== undefined) {
      const allowed = [...new Set(granted)].filter((context) => kubeconfig.has(context));
      if (allowed.length === 0) {
        throw new PolicyRejected(
          'No Kubernetes context is available to you: ask the operator for access to one.',
        );
      }
      skypilotConfig.assign(['kubernetes', 'allowed_contexts'], allowed);
    }
    return new MutatedUserRequest(task, skypilotConfig);
  }

  close() {
    return this.#client.close();
  }

  /** @param {import('blazar-enforcement').Call} call */
  async #registryText(call) {
    const registry = this.options.dynamic_kubernetes_contexts_update_registry ?? '';
    if (!/^https?:/i.test(registry)) {
      return textOfFile(registry);
    }
    const { status, body } = await this.#client.get(registry, call);
    if (status !== 200) {
      throw new Error(`expected 200 from the registry of Kubernetes contexts, got ${status}`);
    }
    return body;
  }
}

/**
 * The contexts granted to the user; `undefined` = not known yet, and SkyPilot will ask again when it is.
 *
 * @param {import('blazar-enforcement/skypilot').UserRequest} userRequest
 * @param {import('./kubernetes-contexts.js').Registry} registry
 * @returns {readonly string[] | undefined}
 */
function grantedTo(
  { user, atClientSide, requestName, skypilotConfig },
  { users, workspaces, default: everyones },
) {
  if (user === null && Object.keys(users).length > 0) {
    if (atClientSide) {
      return undefined;
    }
    throw new Error('SkyPilot sent no user, so the allowed contexts are not known');
  }
  const own = user === null ? undefined : (entry(users, user.id) ?? entry(users, user.name));
  if (own !== undefined) {
    return own;
  }
  const workspace = skypilotConfig.getNested(['active_workspace']);
  if (
    typeof workspace !== 'string' &&
    FIRST_QUESTIONS.has(requestName) &&
    Object.keys(workspaces).length > 0
  ) {
    return undefined;
  }
  return entry(workspaces, typeof workspace === 'string' ? workspace : 'default') ?? everyones;
}

/**
 * @param {Readonly<Record<string, readonly string[]>>} entries
 * @param {string} name
 */
function entry(entries, name) {
  return Object.hasOwn(entries, name) ? entries[name] : undefined;
}
