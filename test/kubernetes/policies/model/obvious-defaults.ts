/** The part of the obvious evaluator that reads defaults: the draft writes lists where a pod has one of a thing. */

/** The section `default`, as it would stand in a pod. */
export function plainDefaults(section: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const result = { ...section };
  if (section.tolerations !== undefined) {
    result.tolerations = (section.tolerations as { values?: string[] }[]).flatMap(
      ({ values, ...toleration }) =>
        values === undefined ? [toleration] : values.map((value) => ({ ...toleration, value })),
    );
  }
  if (section.affinity !== undefined) {
    result.affinity = withoutLists(section.affinity);
  }
  return result;
}

function withoutLists(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(withoutLists);
  }
  if (typeof value !== 'object' || value === null) {
    return value;
  }
  const { keys, operators, ...others } = value as Record<string, unknown>;
  return {
    ...(Array.isArray(keys) && { key: keys[0] }),
    ...(Array.isArray(operators) && { operator: operators[0] }),
    ...Object.fromEntries(Object.entries(others).map(([name, member]) => [name, withoutLists(member)])),
  };
}
