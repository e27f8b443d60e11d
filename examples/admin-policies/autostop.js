/**
 * Reads the autostop settings of a request, in minutes of idleness. Source: SkyPilot 0.13, `resources.autostop` of
 * its tasks.
 */
import { PolicyRejected, resourcesOf } from 'blazar-enforcement/skypilot';

/** Autostop is turned off explicitly. */
export const OFF = -1;

const MINUTES = { s: 1 / 60, m: 1, h: 60, d: 60 * 24, w: 60 * 24 * 7 };

/**
 * `resources.autostop` in any of its forms: `10`, `10m`, `true`, `false`, `{idle_minutes: 10, down: true}`.
 * `undefined` = not set. A mapping without a time, and `true`, mean 0.
 *
 * @param {unknown} autostop
 * @returns {number | undefined}
 */
export function minutesOf(autostop) {
  switch (typeof autostop) {
    case 'undefined':
      return undefined;
    case 'boolean':
      return autostop ? 0 : OFF;
    case 'number':
    case 'bigint':
      return autostop < 0 ? OFF : Number(autostop);
    case 'string':
      return minutesOfText(autostop);
  }
  if (autostop === null) {
    return undefined;
  }
  if (Array.isArray(autostop)) {
    throw unreadable();
  }
  return minutesOf(/** @type {{ idle_minutes?: unknown }} */ (autostop).idle_minutes) ?? 0;
}

/**
 * The same for each alternative of the task. If the task does not set autostop, the command line counts; if both do,
 * SkyPilot uses the task.
 *
 * @param {Pick<import('blazar-enforcement/skypilot').UserRequest, 'task' | 'requestOptions'>} userRequest
 * @returns {(number | undefined)[]}
 */
export function autostopsOf({ task, requestOptions }) {
  const said = minutesOfOptions(requestOptions);
  return resourcesOf(task).map(({ autostop }) => minutesOf(autostop) ?? said);
}

/**
 * @param {import('blazar-enforcement/skypilot').RequestOptions | null} requestOptions
 * @returns {number | undefined}
 */
export function minutesOfOptions(requestOptions) {
  const minutes = minutesOf(requestOptions?.idleMinutesToAutostop);
  return minutes === undefined && requestOptions?.down ? 0 : minutes;
}

/** @param {string} text */
function minutesOfText(text) {
  const [, amount, unit = 'm'] = /^\s*(\d{1,9})\s*([smhdw])?\s*$/i.exec(text) ?? [];
  if (amount === undefined) {
    throw unreadable();
  }
  return Math.ceil(Number(amount) * MINUTES[/** @type {keyof typeof MINUTES} */ (unit.toLowerCase())]);
}

function unreadable() {
  return new PolicyRejected(
    'resources.autostop: expected minutes, a time such as 10m or 1h, or idle_minutes.',
  );
}
