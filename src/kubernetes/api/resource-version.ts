/** Versions are numbers of etcd, or else no two can be compared. */
export function isOlder(one: string, other: string): boolean {
  return /^\d{1,20}$/.test(one) && /^\d{1,20}$/.test(other) && BigInt(one) < BigInt(other);
}
