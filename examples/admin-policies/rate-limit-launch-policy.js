import { createHash } from 'node:crypto';
import { AdminPolicy, MutatedUserRequest, PolicyRejected } from 'blazar-enforcement/skypilot';
import { z } from 'zod';

const options = z.object({
  rate_limit_launch: z.int().min(1).max(1000).default(10).meta({
    description: 'Maximum number of launches per user within rate_limit_launch_seconds.',
  }),
  rate_limit_launch_seconds: z.int().min(1).max(86_400).default(60).meta({
    description: 'The period in which launches are counted.',
    unit: 'seconds',
  }),
});

/** SkyPilot waits this long for a policy. If it asks again about the same launch, it does so within this time. */
const REPEAT_SECONDS = 30;
/** Maximum number of users to remember. Beyond it, the user whose last launch is oldest is forgotten. */
const MAX_USERS = 10_000;

/** @typedef {{ readonly at: number, readonly of: string }} Launch */

/**
 * Limits the number of launches per user in a period. Counts what the server is about to launch, but not its earlier
 * requests, requests from the client and dry runs. A launch that SkyPilot asks about again counts once.
 *
 * Put this policy last: launches that a later policy rejects would be counted too. Each process counts by itself, and
 * starts again when the configuration is reloaded.
 *
 * @extends {AdminPolicy<z.infer<typeof options>>}
 */
export class RateLimitLaunchPolicy extends AdminPolicy {
  static options = options;

  /** Launches by user, oldest first. Users are ordered by their latest launch. @type {Map<string, readonly Launch[]>} */
  #launches = new Map();

  /** @param {import('blazar-enforcement/skypilot').UserRequest} userRequest */
  validateAndMutate(userRequest) {
    const { task, skypilotConfig, requestName, requestOptions, atClientSide, user } = userRequest;
    if (requestName === 'launch' && !atClientSide && requestOptions?.dryrun !== true) {
      if (user === null) {
        throw new Error('SkyPilot sent no user, so launches cannot be counted');
      }
      this.#count(user.id, launchOf(userRequest));
    }
    return new MutatedUserRequest(task, skypilotConfig);
  }

  /**
   * @param {string} user
   * @param {string} of
   */
  #count(user, of) {
    const { rate_limit_launch: limit, rate_limit_launch_seconds: seconds } = this.options;
    const now = this.services.clock.now().getTime() / 1000;
    // If the clock was set back, the launches before it do not count.
    const recent = (this.#launches.get(user) ?? []).filter(({ at }) => at <= now && now - at < seconds);
    if (recent.some((launch) => launch.of === of && now - launch.at < REPEAT_SECONDS)) {
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

  /** @param {number} before */
  #forget(before) {
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
 *
 * @param {import('blazar-enforcement/skypilot').UserRequest} userRequest
 */
function launchOf({ task, requestOptions }) {
  const { resources: _, ...rest } = task;
  const text = JSON.stringify([requestOptions?.clusterName ?? null, rest], (_name, value) =>
    typeof value === 'bigint' ? String(value) : value,
  );
  return createHash('sha256').update(text).digest('base64');
}
