import { createHash } from 'node:crypto';
import { z } from 'zod';
import { AdminPolicy, MutatedUserRequest, PolicyRejected, type UserRequest } from '../src/skypilot/index.ts';

const options = z.object({
  rate_limit_launch: z.int().min(1).max(1000).default(10).meta({
    description: 'Maximum number of launches per user within rate_limit_launch_seconds.',
  }),
  rate_limit_launch_seconds: z.int().min(1).max(86_400).default(60).meta({
    description: 'The period in which launches are counted.',
    unit: 'seconds',
  }),
});

/** SkyPilot waits this long for a policy. If it calls again for the same launch, it does so within this time. */
const REPEAT_SECONDS = 30;
/** Maximum number of remembered users. Above it, the user with the oldest last launch is forgotten. */
const MAX_USERS = 10_000;

interface Launch {
  /** In seconds. */
  readonly at: number;
  /** `undefined` = different from all others. */
  readonly of: string | undefined;
}

/**
 * Limits the number of launches per user in a period. Counts what the server is about to launch, not its
 * earlier requests, requests from the client or dry runs. A launch that SkyPilot repeats the call for counts
 * once.
 *
 * Put this policy last: launches that a later policy rejects would be counted too. Each process counts
 * separately, and starts again when the configuration is reloaded.
 */
export class RateLimitLaunchPolicy extends AdminPolicy<z.infer<typeof options>> {
  static override readonly options = options;
  /** A launch counts once, whatever its outcome. */
  static override readonly askedOnce = true;

  /** Launches by user, oldest first. Users are ordered by their latest launch. */
  readonly #launches = new Map<string, readonly Launch[]>();

  override validateAndMutate(userRequest: UserRequest): MutatedUserRequest {
    const { task, skypilotConfig, requestName, requestOptions, atClientSide, user } = userRequest;
    if (requestName === 'launch' && !atClientSide && requestOptions?.dryrun !== true) {
      if (user === null) {
        throw new Error('SkyPilot sent no user, so launches cannot be counted');
      }
      this.#count(user.id, launchOf(userRequest));
    }
    return new MutatedUserRequest(task, skypilotConfig);
  }

  #count(user: string, of: string | undefined): void {
    const { rate_limit_launch: limit, rate_limit_launch_seconds: seconds } = this.options;
    const now = this.services.clock.now().getTime() / 1000;
    // If the clock was set back, the launches before it do not count.
    const recent = (this.#launches.get(user) ?? []).filter(({ at }) => at <= now && now - at < seconds);
    if (of !== undefined && recent.some((launch) => launch.of === of && now - launch.at < REPEAT_SECONDS)) {
      return;
    }
    const [oldest] = recent;
    if (oldest !== undefined && recent.length >= limit) {
      const wait = Math.ceil(oldest.at + seconds - now);
      throw new PolicyRejected(
        `Too many launches: the limit is ${limit} in ${seconds} seconds. Please try again in ${wait} seconds.`,
      );
    }
    this.#launches.delete(user);
    this.#launches.set(user, [...recent, { at: now, of }]);
    this.#forget(now - seconds);
  }

  /** `before`: in seconds. */
  #forget(before: number): void {
    for (const [user, launches] of this.#launches) {
      const last = launches.at(-1);
      if (this.#launches.size <= MAX_USERS && last !== undefined && last.at > before) {
        return;
      }
      this.#launches.delete(user);
    }
  }
}

/**
 * Identifies a launch by the cluster and the task without its resources, which other policies change.
 * `undefined` = no cluster is named: each launch makes a new one.
 */
function launchOf({ task, requestOptions }: UserRequest): string | undefined {
  const cluster = requestOptions?.clusterName ?? '';
  if (cluster === '') {
    return undefined;
  }
  const { resources: _, ...rest } = task;
  const text = JSON.stringify([cluster, rest], (_name, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value,
  );
  return createHash('sha256').update(text).digest('base64');
}
