import { AdminPolicy, changeResources, MutatedUserRequest } from 'blazar-enforcement/skypilot';
import { z } from 'zod';
import { minutesOf, minutesOfOptions, OFF } from './autostop.js';

const options = z.object({
  set_max_autostop_idle_minutes: z.int().min(0).default(10).meta({
    description: 'Idle time after which every cluster stops, unless the request sets less.',
    unit: 'minutes',
  }),
});

/**
 * Caps the autostop time of all alternatives, and sets it where it is missing.
 *
 * @extends {AdminPolicy<z.infer<typeof options>>}
 */
export class SetMaxAutostopIdleMinutesPolicy extends AdminPolicy {
  static options = options;

  /** @param {import('blazar-enforcement/skypilot').UserRequest} userRequest */
  validateAndMutate({ task, skypilotConfig, requestOptions }) {
    const max = this.options.set_max_autostop_idle_minutes;
    changeResources(task, ({ autostop }) => {
      const own = minutesOf(autostop);
      if (own !== undefined && own !== OFF && own <= max) {
        return {};
      }
      const minutes = own === undefined ? capped(minutesOfOptions(requestOptions), max) : max;
      return { autostop: withMinutes(autostop, minutes, requestOptions?.down === true) };
    });
    return new MutatedUserRequest(task, skypilotConfig);
  }
}

/**
 * @param {number | undefined} minutes
 * @param {number} max
 */
function capped(minutes, max) {
  return minutes === undefined || minutes === OFF ? max : Math.min(minutes, max);
}

/**
 * Keeps other settings, such as `down`.
 *
 * @param {unknown} autostop
 * @param {number} minutes
 * @param {boolean} down from the command line
 */
function withMinutes(autostop, minutes, down) {
  if (typeof autostop === 'object' && autostop !== null) {
    return { ...autostop, idle_minutes: minutes };
  }
  return down ? { idle_minutes: minutes, down } : { idle_minutes: minutes };
}
