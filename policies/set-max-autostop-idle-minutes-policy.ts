import { z } from 'zod';
import {
  AdminPolicy,
  AUTOSTOP_OFF,
  autostopMinutesOfOptions,
  autostopOf,
  changeResources,
  isMapping,
  MutatedUserRequest,
  resourcesOf,
  stoppingOf,
  type UserRequest,
} from '../src/skypilot/index.ts';

const options = z.object({
  set_max_autostop_idle_minutes: z.int().min(0).default(10).meta({
    description:
      'Idle time after which every cluster stops, unless the request sets less. Where SkyPilot cannot stop clusters, such as on Kubernetes, on Lambda Cloud, or as spot instances of AWS, they are torn down.',
    unit: 'minutes',
  }),
});

/**
 * Left alone: controllers have an autostop of their own, and SkyPilot replaces a worker of a pool, or a replica, that
 * stops when it is idle.
 */
const OTHERS = /^(?:serve\.|jobs\.(?:pool_apply|launch_controller)$)/;

/** Caps the autostop time of all alternatives, and sets it if missing. */
export class SetMaxAutostopIdleMinutesPolicy extends AdminPolicy<z.infer<typeof options>> {
  static override readonly options = options;

  override validateAndMutate(request: UserRequest): MutatedUserRequest {
    const { task, skypilotConfig, requestName, requestOptions } = request;
    if (OTHERS.test(requestName)) {
      return new MutatedUserRequest(task, skypilotConfig);
    }
    const max = this.options.set_max_autostop_idle_minutes;
    // SkyPilot wants one autostop for all alternatives.
    const places = resourcesOf(task).flatMap((resources) => stoppingOf(resources, request));
    const tearsDown = places.includes('never') || !places.includes('stopped');
    const down = tearsDown || requestOptions?.down === true;
    changeResources(task, ({ autostop }) => {
      const own = autostopOf(autostop);
      const minutes = capped(own?.idleMinutes ?? autostopMinutesOfOptions(requestOptions), max);
      return own?.idleMinutes === minutes && (own.down || !tearsDown)
        ? {}
        : {
            autostop: { ...(isMapping(autostop) && autostop), idle_minutes: minutes, ...(down && { down }) },
          };
    });
    return new MutatedUserRequest(task, skypilotConfig);
  }
}

function capped(minutes: number | undefined, max: number): number {
  return minutes === undefined || minutes === AUTOSTOP_OFF ? max : Math.min(minutes, max);
}
