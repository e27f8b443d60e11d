import { closest } from 'fastest-levenshtein';

/** Wrong names from real configurations → what they mean, although other names are nearer letter by letter. */
const MEANT: Readonly<Record<string, string>> = {
  MaxReservationLengthFilter: 'MaxLeaseDurationFilter',
  max_reservation_length: 'max_lease_duration',
};

/** `; the nearest right name is "enabled_filters"`; empty when there are no names. */
export function nearestName(name: string, names: readonly string[]): string {
  if (names.length === 0) {
    return '';
  }
  const meant = Object.hasOwn(MEANT, name) ? MEANT[name] : undefined;
  const nearest = meant !== undefined && names.includes(meant) ? meant : closest(name, names);
  return `; the nearest right name is "${nearest}"`;
}
