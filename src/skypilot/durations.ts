/** Reads durations as tasks write them. Source: SkyPilot 0.13, the time patterns of its schemas. */

const MINUTES = { m: 1, h: 60, d: 24 * 60, w: 7 * 24 * 60 } as const;

/**
 * Minutes of a duration: `10`, `"10"`, `10m`, `1h`, `2d`, `1w`. `undefined` for everything else; SkyPilot accepts no
 * fractions, signs, blanks or seconds here.
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
