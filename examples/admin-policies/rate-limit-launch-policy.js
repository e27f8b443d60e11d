import { createHash } from 'node:crypto';
import { AdminPolicy, MutatedUserRequest, PolicyRejected } from 'blazar-enforcement/skypilot';
import { z } from 'zod';

const options = z.object({
  rate_limit_launch: z.int().min(1).max(1000).default(10).meta({
    description: 'So many launches each user has in the time of rate_limit_launch_seconds.',
  }),
  rate_limit_launch_seconds: z.int().min(1).max(86_400).default(60).meta({
    description: 'The time in which launches are counted.',
    unit: 'seconds',
  }),
});

/** SkyPilot waits so long for a policy; whoever asks again about a launch does it within this time. */
const REPEAT_SECONDS = 30;
/** Beyond these the one whose last launch is longest ago is forgotten. */
const MAX_USERS = 10_000;

/** @typedef {{ readonly at: number, readonly of: string }} Launch */

/**
 * Lets each user launch so often in so much time. What the server is about to launch counts; its first questions, those of
 * the user's own machine and dry runs don't. Asked again about the same launch, it counts it once.
 *
 * Name it last: what a policy behind it rejects has been counted. Counts are of one process, and begin anew when the
 * configuration is read again.
 *
 * @extends {AdminPolicy<z.infer<typeof options>>}
 */
export class RateLimitLaunchPolicy extends AdminPolicy {
  static options = options;

  /** Launches by user, oldest first; the user of the latest launch is last. @type {Map<string, readonly Launch[]>} */
  #launches = new Map();

  /** @param {import('blazar-enforcement/skypilot').UserRequest} userRequest */
  validateAndMutate(userRequest) {
    const { task, skypilotConfig, requestName, requestOptions, atClientSide, user } = userRequest;
    if (requestName === 'launch' && !atClientSide && requestOptions?.dryrun !== true) {
      if (user === null) {
        throw new Error('SkyPilot did not say who launches, so launches cannot be counted');
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
    // A clock that was set back must not keep anyone waiting for it.
    const recent = (this.#launches.get(user) ?? []).filter(({ at }) => at <= now && now - at < seconds);
    if (recent.some((launch) => launch.of === of && now - launch.at < REPEAT_SECONDS)) {
      return;
    }
    const [oldest] = recent;
    if (oldest !== undefined && recent.length >= limit) {
      const wait = Math.ceil(oldest.at + seconds - now);
      throw new PolicyRejected(
        `Too many launches: there may be ${limit} in ${seconds} seconds. Please try again in ${wait} seconds.`,
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
 * What tells launches from each other: the cluster and the task without its resources, which other policies change.
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
