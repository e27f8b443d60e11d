import { z } from 'zod';
import {
  AdminPolicy,
  AUTOSTOP_OFF,
  autostopMinutesOf,
  autostopMinutesOfOptions,
  changeResources,
  cloudsOf,
  infraOf,
  MutatedUserRequest,
  resourcesOf,
  type UserRequest,
} from '../src/skypilot/index.ts';

const options = z.object({
  set_max_autostop_idle_minutes: z.int().min(0).default(10).meta({
    description:
      'Idle time after which every cluster stops, unless the request sets less. Where SkyPilot cannot stop clusters (Kubernetes, SSH node pools, Slurm), they are torn down.',
    unit: 'minutes',
  }),
});

/** Where SkyPilot refuses a launch with autostop, unless it tears the cluster down. */
const WITHOUT_STOP = new Set(['kubernetes', 'ssh', 'slurm']);

/** Caps the autostop time of all alternatives, and sets it if missing. */
export class SetMaxAutostopIdleMinutesPolicy extends AdminPolicy<z.infer<typeof options>> {
  static override readonly options = options;

  override validateAndMutate({ task, skypilotConfig, requestOptions }: UserRequest): MutatedUserRequest {
    const max = this.options.set_max_autostop_idle_minutes;
    const allowed: readonly (string | null)[] = cloudsOf(skypilotConfig.get('allowed_clouds')) ?? [null];
    // SkyPilot wants one autostop for all alternatives.
    const clouds = resourcesOf(task).flatMap((resources) => infraOf(resources).cloud ?? allowed);
    const down = requestOptions?.down === true || clouds.every((cloud) => WITHOUT_STOP.has(cloud ?? ''));
    changeResources(task, ({ autostop }) => {
      const own = autostopMinutesOf(autostop);
      if (own !== undefined && own !== AUTOSTOP_OFF && own <= max) {
        return {};
      }
      const minutes = own === undefined ? capped(autostopMinutesOfOptions(requestOptions), max) : max;
      return { autostop: withMinutes(autostop, minutes, down) };
    });
    return new MutatedUserRequest(task, skypilotConfig);
  }
}

function capped(minutes: number | undefined, max: number): number {
  return minutes === undefined || minutes === AUTOSTOP_OFF ? max : Math.min(minutes, max);
}

/** Keeps other settings, such as `down`. `down`: whether to tear the cluster down if nothing else is set. */
function withMinutes(autostop: unknown, minutes: number, down: boolean): unknown {
  if (typeof autostop === 'object' && autostop !== null) {
    return { ...autostop, idle_minutes: minutes };
  }
  return down ? { idle_minutes: minutes, down } : { idle_minutes: minutes };
}
