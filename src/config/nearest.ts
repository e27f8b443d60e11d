/** The right name that a wrong one is likely to mean: one rule for options, fields, keys, filters, policies and objects. */
import { distance } from 'fastest-levenshtein';

/** Wrong names from real configurations → what they mean, although other names are nearer letter by letter. */
const MEANT: Readonly<Record<string, string>> = {
  MaxReservationLengthFilter: 'MaxLeaseDurationFilter',
  max_reservation_length: 'max_lease_duration',
};

/** Longer names are no typing errors, and comparing them is slow. In characters. */
const MAX_LENGTH = 64;
/** Wrong letters in a name of any length. */
const MAX_LETTERS = 3;
/** Of this many letters of a name, one may be wrong. */
const LETTERS_PER_MISTAKE = 3;
/** Shorter beginnings are the beginning of too much. In letters. */
const MIN_BEGINNING = 4;

/** `; the nearest right name is "enabled_filters"`; empty if no name is near. */
export function nearestName(name: string, names: readonly string[]): string {
  const found = nearest(name, names);
  return found === undefined ? '' : `; the nearest right name is "${found}"`;
}

/**
 * The name that differs least: by at most a third of its letters, and at most `most` (1 to 3, default 3). Case, `-`, `_` and spaces do
 * not count, and two letters in the wrong order count as one. If there is none, the shortest name that begins with what was written.
 */
export function nearest(written: string, names: readonly string[], most = MAX_LETTERS): string | undefined {
  if (written.length > MAX_LENGTH) {
    return undefined;
  }
  const meant = meantBy(written);
  if (meant !== undefined && names.includes(meant)) {
    return meant;
  }
  const bare = bareName(written);
  const bound = Math.min(most, Math.floor(bare.length / LETTERS_PER_MISTAKE));
  let best: { name: string; letters: number } | undefined;
  for (const name of names) {
    const letters = lettersBetween(bare, bareName(name), bound);
    if (letters < (best?.letters ?? bound + 1)) {
      best = { name, letters };
    }
  }
  return best?.name ?? longerName(bare, names);
}

/** What a wrong name means that was seen in real configurations; `undefined` for any other. */
export function meantBy(name: string): string | undefined {
  return Object.hasOwn(MEANT, name) ? MEANT[name] : undefined;
}

/** The shortest that goes on after what was written. */
function longerName(beginning: string, names: readonly string[]): string | undefined {
  return beginning.length < MIN_BEGINNING
    ? undefined
    : names
        .filter((name) => bareName(name).startsWith(beginning))
        .sort((a, b) => a.length - b.length)
        .at(0);
}

function lettersBetween(a: string, b: string, most: number): number {
  if (Math.abs(a.length - b.length) > most) {
    return most + 1;
  }
  const letters = distance(a, b);
  return letters === 2 && sorted(a) === sorted(b) ? 1 : letters;
}

function bareName(name: string): string {
  return name.toLowerCase().replace(/[-_\s]/g, '');
}

function sorted(name: string): string {
  return [...name].sort().join('');
}
