/** Reads the autostop settings of a request. Source: SkyPilot 0.13, `resources.autostop` of its tasks. */
import { isMapping } from '../../base/yaml/tree.ts';
import { PolicyRejected } from '../admin-policy.ts';
import type { RequestOptions, UserRequest } from '../request/user-request.ts';
import { resourcesOf } from './resources.ts';

/** Autostop is turned off explicitly. */
export const AUTOSTOP_OFF = -1;

const WAITS = ['jobs_and_ssh', 'jobs', 'none'] as const;

export interface Autostop {
  /** Minutes of idleness, or `AUTOSTOP_OFF`. */
  readonly idleMinutes: number;
  /** Whether the cluster is torn down instead of stopped. */
  readonly down: boolean;
  /** What must end before the cluster counts as idle. `undefined` = SkyPilot's default, `jobs_and_ssh`. */
  readonly waitFor: (typeof WAITS)[number] | undefined;
  /** A command that runs before. `undefined` = none. */
  readonly hook: string | undefined;
}

/**
 * `resources.autostop` in any of its forms: `10`, `10m`, `true`, `false`, or a mapping with `idle_minutes`,
 * `down`, `wait_for` and `hook`. `undefined` = not set. A mapping without a time, and `true`, mean 0 minutes.
 *
 * @throws PolicyRejected for a form that SkyPilot does not accept
 */
export function autostopOf(autostop: unknown): Autostop | undefined {
  if (autostop === undefined || autostop === null) {
    return undefined;
  }
  if (!isMapping(autostop)) {
    return { idleMinutes: minutesOf(autostop), down: false, waitFor: undefined, hook: undefined };
  }
  const { idle_minutes = 0, down = false, wait_for, hook } = autostop;
  const waitFor = WAITS.find((wait) => typeof wait_for === 'string' && wait === wait_for.toLowerCase());
  const isReadable =
    idle_minutes !== null &&
    typeof idle_minutes !== 'string' &&
    typeof down === 'boolean' &&
    (wait_for === undefined || waitFor !== undefined) &&
    (hook === undefined || typeof hook === 'string');
  if (!isReadable) {
    throw unreadable();
  }
  return { idleMinutes: minutesOf(idle_minutes), down, waitFor, hook };
}

/** Its minutes, or `AUTOSTOP_OFF`. `undefined` = not set. @throws PolicyRejected as `autostopOf` */
export function autostopMinutesOf(autostop: unknown): number | undefined {
  return autostopOf(autostop)?.idleMinutes;
}

/**
 * The minutes for each alternative of the task. If the task does not set autostop, the command line applies.
 * SkyPilot writes the command line into the task before it calls a policy, so the task has precedence.
 *
 * @throws PolicyRejected as `autostopOf`
 */
export function autostopsOf({
  task,
  requestOptions,
}: Pick<UserRequest, 'task' | 'requestOptions'>): (number | undefined)[] {
  const said = autostopMinutesOfOptions(requestOptions);
  return resourcesOf(task).map(({ autostop }) => autostopMinutesOf(autostop) ?? said);
}

/** The autostop of the command line, in minutes, or `AUTOSTOP_OFF`. `undefined` = not set. */
export function autostopMinutesOfOptions(requestOptions: RequestOptions | null): number | undefined {
  const minutes = autostopMinutesOf(requestOptions?.idleMinutesToAutostop);
  return minutes === undefined && requestOptions?.down ? 0 : minutes;
}

function minutesOf(value: unknown): number {
  if (typeof value === 'boolean') {
    return value ? 0 : AUTOSTOP_OFF;
  }
  if (typeof value === 'number' || typeof value === 'bigint') {
    return value < 0 ? AUTOSTOP_OFF : Number(value);
  }
  const minutes = durationMinutes(value);
  if (minutes === undefined) {
    throw unreadable();
  }
  return minutes;
}

function unreadable(): PolicyRejected {
  return new PolicyRejected(
    'resources.autostop: expected minutes, a time such as 10m or 1h, or a mapping with idle_minutes, down, wait_for and hook.',
  );
}

/** Reads durations as tasks write them. Source: SkyPilot 0.13, the time patterns of its schemas. */
const MINUTES = { m: 1, h: 60, d: 24 * 60, w: 7 * 24 * 60 } as const;

/**
 * Minutes of a duration: `10`, `"10"`, `10m`, `1h`, `2d`, `1w`. `undefined` for everything else; SkyPilot
 * accepts no fractions, signs, blanks or seconds here.
 */
export function durationMinutes(duration: unknown): number | undefined {
  const { amount, unit = 'm' } = partsOf(duration, /^(?<amount>[0-9]{1,15})(?<unit>[mhdw])?$/i) ?? {};
  return amount === undefined
    ? undefined
    : Number(amount) * MINUTES[unit.toLowerCase() as keyof typeof MINUTES];
}

/** Seconds of a duration: `30`, `30s`, `5m`, `1h`, `2d`, `1w`. `undefined` for everything else. */
export function durationSeconds(duration: unknown): number | undefined {
  const { amount, unit = 's' } = partsOf(duration, /^(?<amount>[0-9]{1,15})(?<unit>[smhdw])?$/i) ?? {};
  if (amount === undefined) {
    return undefined;
  }
  const lower = unit.toLowerCase();
  return Number(amount) * (lower === 's' ? 1 : 60 * MINUTES[lower as keyof typeof MINUTES]);
}

function partsOf(
  duration: unknown,
  pattern: RegExp,
): { readonly amount?: string; readonly unit?: string } | undefined {
  const text = typeof duration === 'bigint' || Number.isSafeInteger(duration) ? String(duration) : duration;
  return typeof text === 'string' ? pattern.exec(text)?.groups : undefined;
}
