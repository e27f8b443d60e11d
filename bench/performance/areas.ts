/** The areas of the page in order, with their topics. */
export const AREAS: Readonly<Record<string, readonly string[]>> = {
  'A check': ['check', 'upstream', 'peers', 'rules', 'replay'],
  'A request': ['service', 'latency', 'tokens', 'tracing', 'memory'],
  'Leases on record': [
    'ledger',
    'growth',
    'ledger-clients',
    'decision-store',
    'estimate',
    'ledger-lists',
    'blazar',
    'outbox',
  ],
  'Kubernetes and SkyPilot': ['admission', 'skypilot-review'],
  'Commands and other services': ['cold-start', 'external-service'],
  'Hostile input and faults': ['service-worst-case', 'faults', 'fuzz'],
};

/** For topics without an area. */
const OTHER = 'More';

/** The areas of the given topics, with these topics. */
export function inAreas(topics: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const placed = new Set(Object.values(AREAS).flat());
  const areas = { ...AREAS, [OTHER]: topics.filter((topic) => !placed.has(topic)) };
  return new Map(
    Object.entries(areas)
      .map(([area, ofIt]) => [area, ofIt.filter((topic) => topics.includes(topic))] as const)
      .filter(([, ofIt]) => ofIt.length > 0),
  );
}
