/** The part of the obvious evaluator that reads documents as they are written, and merges them. The draft writes lists where a pod has one of a thing. */

/** The section `default`, as it would stand in a pod. */
function plainDefaults(section: Readonly<Record<string, unknown>>): Record<string, unknown> {
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

export interface PolicyDocument {
  readonly name: string;
  readonly spec: Spec;
}

interface Spec {
  readonly required?: Section | null;
  readonly allowed?: Section | null;
  readonly default?: Section | null;
  readonly allowedAffinities?: unknown;
}

/** By the names of its fields; `null` is as not written. */
export type Section = Readonly<Record<string, unknown>>;

export type Strategy = 'deep' | 'first' | 'simple' | 'intersection';

/** One document, in the proposal's final spelling. */
export interface Policy {
  readonly required: Section;
  readonly allowed: Section;
  readonly default: Section;
}

/** What applies: of what is allowed, all that was written, one by one. */
export interface Applying {
  readonly required: Section;
  readonly allowed: Readonly<Record<string, readonly unknown[]>>;
  readonly default: Section;
}

const SPELLINGS: Readonly<Record<string, string>> = {
  SchedulerNames: 'schedulerNames',
  SchedulerName: 'schedulerName',
  priorityClasseNames: 'priorityClassNames',
  priorityClasseName: 'priorityClassName',
};

export function read({ required, allowed, default: defaults, allowedAffinities }: Spec): Policy {
  return {
    required: section(required),
    allowed: section({ affinities: allowedAffinities, ...section(allowed) }),
    default: plainDefaults(section(defaults)),
  };
}

function section(written: Section | null | undefined): Section {
  const there = Object.entries(written ?? {}).filter(([, value]) => value !== null && value !== undefined);
  return Object.fromEntries(there.map(([field, value]) => [SPELLINGS[field] ?? field, value]));
}

export function alone(policy: Policy): Applying {
  return merge([policy], 'first');
}

export function merge(policies: readonly Policy[], strategy: Strategy): Applying {
  const counting = strategy === 'first' ? policies.slice(0, 1) : policies;
  const combine = strategy === 'simple' || strategy === 'first' ? firstOfFields : firstOfParts;
  const fields = new Set(counting.flatMap(({ allowed }) => Object.keys(allowed)));
  const allowed = Object.fromEntries(
    [...fields].map((field) => {
      const all = counting.map((policy) => policy.allowed[field]).filter((value) => value !== undefined);
      return [field, strategy === 'simple' ? all.slice(0, 1) : all];
    }),
  );
  return {
    required: combine(counting.map(({ required }) => required)),
    allowed,
    default: combine(counting.map((policy) => policy.default)),
  };
}

function firstOfFields(sections: readonly Section[]): Section {
  return Object.assign({}, ...sections.toReversed());
}

function firstOfParts(sections: readonly Section[]): Section {
  const result: Record<string, unknown> = {};
  for (const name of new Set(sections.flatMap((one) => Object.keys(one)))) {
    const values = sections.filter((one) => Object.hasOwn(one, name)).map((one) => one[name]);
    const [first] = values;
    const isPart = typeof first !== 'object' || Array.isArray(first);
    result[name] = isPart ? first : firstOfParts(values as Section[]);
  }
  return result;
}
