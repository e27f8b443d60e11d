import { z } from 'zod';
import {
  AdminPolicy,
  AUTOSTOP_OFF,
  autostopMinutesOf,
  autostopMinutesOfOptions,
  changeResources,
  MutatedUserRequest,
  type UserRequest,
} from '../src/skypilot/index.ts';

const options = z.object({
  set_max_autostop_idle_minutes: z.int().min(0).default(10).meta({
    description: 'Idle time after which every cluster stops, unless the request sets less.',
    unit: 'minutes',
  }),
});

/** Caps the autostop time of all alternatives, and sets it if missing. */
export class SetMaxAutostopIdleMinutesPolicy extends AdminPolicy<z.infer<typeof options>> {
  static override readonly options = options;

  override validateAndMutate({ task, skypilotConfig, requestOptions }: UserRequest): MutatedUserRequest {
    const max = this.options.set_max_autostop_idle_minutes;
    changeResources(task, ({ autostop }) => {
      const own = autostopMinutesOf(autostop);
      if (own !== undefined && own !== AUTOSTOP_OFF && own <= max) {
        return {};
      }
      const minutes = own === undefined ? capped(autostopMinutesOfOptions(requestOptions), max) : max;
      return { autostop: withMinutes(autostop, minutes, requestOptions?.down === true) };
    });
    return new MutatedUserRequest(task, skypilotConfig);
  }
}

function capped(minutes: number | undefined, max: number): number {
  return minutes === undefined || minutes === AUTOSTOP_OFF ? max : Math.min(minutes, max);
}

/** Keeps other settings, such as `down`. `down`: from the command line. */
function withMinutes(autostop: unknown, minutes: number, down: boolean): unknown {
  if (typeof autostop === 'object' && autostop !== null) {
    return { ...autostop, idle_minutes: minutes };
  }
  return down ? { idle_minutes: minutes, down } : { idle_minutes: minutes };
}
