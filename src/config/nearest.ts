/** The right name for a likely mistake: one rule for options, fields, keys, filters, policies and objects. */
import { distance } from 'fastest-levenshtein';

/** Wrong names from real configurations → the right ones, although other names are closer by letters. */
const MEANT: Readonly<Record<string, string>> = {
  MaxReservationLengthFilter: 'MaxLeaseDurationFilter',
  max_reservation_length: 'max_lease_duration',
};

/** Longer names are not typing errors, and slow to compare. In characters. */
const MAX_LENGTH = 64;
/** Maximum number of wrong letters. */
const MAX_LETTERS = 3;
/** This many letters of a name allow one mistake. */
const LETTERS_PER_MISTAKE = 3;
/** Shorter prefixes match too many names. In letters. */
const MIN_BEGINNING = 4;

/** `; the nearest right name is "enabled_filters"`; empty if no name is near. */
export function nearestName(name: string, names: readonly string[]): string {
  const found = nearest(name, names);
  return found === undefined ? '' : `; the nearest right name is "${found}"`;
}

/**
 * The closest name: at most a third of its letters may differ, and at most `most` (1 to 3, default 3). Case,
 * `-`, `_` and spaces do not count; two swapped letters count as one. If there is none, the shortest name
 * that begins with `written`.
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

/** The right name for a wrong one from real configurations; `undefined` for any other. */
export function meantBy(name: string): string | undefined {
  return Object.hasOwn(MEANT, name) ? MEANT[name] : undefined;
}

/** The shortest name that begins with the text. */
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
