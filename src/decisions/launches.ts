/** Which of SkyPilot's requests about one launch counts. Source: SkyPilot 0.13, where it calls its admin policy. */
import { REQUEST_NAMES } from '../skypilot/request/user-request.ts';
import type { ReceivedRequest } from '../skypilot/request/wire.ts';

type Asked = Pick<ReceivedRequest, 'requestName' | 'requestOptions' | 'atClientSide'>;

/**
 * What the server asks last before it launches something for a user. A pool is made as a service: `serve.up`. Names that are not known count
 * too, since a later SkyPilot may launch by them.
 */
const LAUNCHES: ReadonlySet<string> = new Set([
  'launch',
  'jobs.launch',
  'jobs.pool_apply',
  'serve.up',
  'serve.update',
]);
/** What is asked before a launch: a refusal ends it there. */
const FORERUNNERS: ReadonlySet<string> = new Set(['validate', 'optimize']);

/**
 * Whether a decision counts as a launch: one that is allowed where the server asks last, one that is refused where that happens. Not: dry
 * runs, commands for clusters that run, and what controllers launch for a job or a service that was counted.
 */
export function isCountedLaunch(
  { requestName, requestOptions, atClientSide }: Asked,
  isAllowed: boolean,
): boolean {
  if (requestOptions?.dryrun === true) {
    return false;
  }
  const isKnown = REQUEST_NAMES.some((name) => name === requestName);
  const launches = LAUNCHES.has(requestName) || !isKnown;
  return isAllowed ? launches && !atClientSide : launches || FORERUNNERS.has(requestName);
}
