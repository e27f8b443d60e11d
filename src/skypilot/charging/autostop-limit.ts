/** For how long a request guarantees at most that its cluster is up: by an autostop that waits for nothing. */
import { isMapping } from '../../yaml/tree.ts';
import { AUTOSTOP_OFF, autostopMinutesOf } from '../autostop.ts';
import { resourcesOf } from '../resources.ts';
import type { Task } from '../user-request.ts';

/** In seconds, of the alternative that takes the longest. `undefined` = there is no such end. Provisioning comes before. */
export function autostopLimitOf(task: Task): number | undefined {
  let longest = 0;
  for (const { autostop } of resourcesOf(task)) {
    const minutes = autostopMinutesOf(autostop);
    const waits = !isMapping(autostop) || String(autostop.wait_for).toLowerCase() !== 'none';
    if (waits || minutes === undefined || minutes === AUTOSTOP_OFF) {
      return undefined;
    }
    longest = Math.max(longest, minutes * 60);
  }
  return longest;
}
