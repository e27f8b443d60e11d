import { z } from 'zod';
import type { Call } from '../src/index.ts';
import {
  AdminPolicy,
  AUTOSTOP_OFF,
  apiServerUrl,
  autostopOf,
  autostopsOf,
  bearerToken,
  MutatedUserRequest,
  needsOneOf,
  PolicyRejected,
  type PolicyServices,
  REQUEST_NAMES,
  resourcesOf,
  SkypilotApiServer,
  stoppingOf,
  type UserRequest,
} from '../src/skypilot/index.ts';

const options = z
  .object({
    enforce_autostop_api_server: apiServerUrl(
      "The URL of SkyPilot's API server, which knows the status of clusters.",
    ),
    enforce_autostop_api_token: bearerToken(
      'The token of a service account at the API server, sent as Authorization: Bearer. Empty = no such header.',
    ),
    enforce_autostop_timeout: z.int().min(1).max(29).default(10).meta({
      description: 'Time limit for a response from the API server. Must be less than [skypilot] deadline.',
      unit: 'seconds',
    }),
  })
  .superRefine(needsOneOf('EnforceAutostopPolicy', 'enforce_autostop_api_server'));

/** Checked, as are unknown requests. All others start nothing, or clusters that SkyPilot stops itself. */
const STARTS: ReadonlySet<string> = new Set(['launch', 'exec']);
const OTHERS: ReadonlySet<string> = new Set(REQUEST_NAMES.filter((name) => !STARTS.has(name)));

const MUST_SET =
  'Autostop must be set: add --idle-minutes-to-autostop 30 (or --down) to the command, or autostop to the resources of the task.';

const MUST_TEAR_DOWN =
  'Autostop must tear the cluster down, because SkyPilot cannot stop it: add --down to the command, or down: true to the autostop of the task.';

/**
 * Allows only clusters with autostop: set by the request, or already set on a running cluster. Users can
 * still change it with `sky autostop`, which calls no policy.
 */
export class EnforceAutostopPolicy extends AdminPolicy<z.infer<typeof options>> {
  static override readonly options = options;

  readonly #server: SkypilotApiServer;

  constructor(values: z.infer<typeof options>, services: PolicyServices) {
    super(values, services);
    this.#server = new SkypilotApiServer(
      {
        url: values.enforce_autostop_api_server ?? '',
        token: values.enforce_autostop_api_token,
        timeout: values.enforce_autostop_timeout,
      },
      services,
    );
  }

  override async validateAndMutate(userRequest: UserRequest, call: Call): Promise<MutatedUserRequest> {
    const { task, skypilotConfig, requestName, requestOptions } = userRequest;
    const request = new MutatedUserRequest(task, skypilotConfig);
    if (OTHERS.has(requestName) || (requestOptions === null && !STARTS.has(requestName))) {
      return request;
    }
    // `sky exec` does not set autostop, even if the task does.
    const isExec = requestName === 'exec';
    const asked = isExec ? [undefined] : autostopsOf(userRequest);
    if (asked.includes(AUTOSTOP_OFF)) {
      throw new PolicyRejected('Autostop must not be turned off.');
    }
    const isNever = resourcesOf(task).some(
      (resources, index) =>
        asked[index] !== undefined &&
        (autostopOf(resources.autostop) ?? requestOptions)?.down !== true &&
        stoppingOf(resources, userRequest).includes('never'),
    );
    if (isNever) {
      throw new PolicyRejected(MUST_TEAR_DOWN);
    }
    if (asked.includes(undefined) && !(await this.#stopsAlready(requestOptions?.clusterName ?? null, call))) {
      throw new PolicyRejected(
        isExec ? 'The cluster must have autostop: set it with sky autostop.' : MUST_SET,
      );
    }
    return request;
  }

  override close(): Promise<void> {
    return this.#server.close();
  }

  async #stopsAlready(clusterName: string | null, call: Call): Promise<boolean> {
    const cluster = clusterName === null ? undefined : await this.#server.cluster(clusterName, call);
    return cluster !== undefined && cluster.status !== 'STOPPED' && cluster.autostop >= 0;
  }
}
