import { closest } from 'fastest-levenshtein';

/** Names in real configurations that nothing ever had, of what is meant by them: letter by letter, others are nearer. */
const MEANT: Readonly<Record<string, string>> = {
  MaxReservationLengthFilter: 'MaxLeaseDurationFilter',
  max_reservation_length: 'max_lease_duration',
};

/** `; the nearest right name is "enabled_filters"`, or nothing when there is no name at all. */
export function nearestName(name: string, names: readonly string[]): string {
  if (names.length === 0) {
    return '';
  }
  const meant = Object.hasOwn(MEANT, name) ? MEANT[name] : undefined;
  const nearest = meant !== undefined && names.includes(meant) ? meant : closest(name, names);
  return `; the nearest right name is "${nearest}"`;
}
