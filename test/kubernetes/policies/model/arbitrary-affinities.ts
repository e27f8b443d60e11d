import fc from 'fast-check';
import { optional } from '../../../support/properties.ts';
import { from, type Part, part, subset } from './arbitrary-parts.ts';
import { PREFERRED, REQUIRED } from './obvious-affinities.ts';

const KEYS = ['arch', 'zone'] as const;
const VALUES = ['1', '2'] as const;

const expression = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      key: from(KEYS),
      operator: from(['In', 'In', 'NotIn'] as const),
      values: subset(VALUES, 1),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ key: from(KEYS), operator: from(['Exists', 'DoesNotExist'] as const) }),
  },
);

const nodeName = fc.record({
  key: fc.constant('metadata.name'),
  operator: from(['In', 'In', 'NotIn'] as const),
  values: subset(VALUES, 1),
});

const few = <Value>(item: fc.Arbitrary<Value>, minLength = 0) => fc.array(item, { minLength, maxLength: 2 });

const term = fc.oneof(
  { weight: 5, arbitrary: fc.record({ matchExpressions: few(expression, 1) }) },
  { weight: 1, arbitrary: fc.record({ matchFields: few(nodeName, 1) }) },
  { weight: 1, arbitrary: fc.record({ matchExpressions: few(expression), matchFields: few(nodeName) }) },
);

const preference = (one: typeof term) =>
  fc.record({ weight: fc.constant(1), preference: one as fc.Arbitrary<object> });

/** Terms of a pod and of a policy are compared by all that they have, so both are as JSON is. */
const asJson = { noNullPrototype: true };
const podTerm = fc.record({ topologyKey: from(['host', 'zone'] as const) }, asJson);
const podPreference = fc.record({ weight: fc.constant(1), podAffinityTerm: podTerm }, asJson);

function affinity(minLength: number) {
  const ofPods = optional({
    [REQUIRED]: few(podTerm, minLength),
    [PREFERRED]: few(podPreference, minLength),
  });
  return {
    nodeAffinity: optional({
      [REQUIRED]: fc.record({ nodeSelectorTerms: few(term, minLength) }),
      [PREFERRED]: few(preference(term), minLength),
    }),
    podAffinity: ofPods,
    podAntiAffinity: ofPods,
  };
}

/** As the draft writes it: a list of one key and one operator. */
function draft(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(draft);
  }
  if (typeof value !== 'object' || value === null) {
    return value;
  }
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) =>
      name === 'key' || name === 'operator' ? [`${name}s`, [member]] : [name, draft(member)],
    ),
  );
}

const expressionRule = optional({
  keys: subset(KEYS),
  operators: subset(['In', 'NotIn', 'Exists', 'DoesNotExist'] as const),
  values: subset(VALUES),
});
const fieldRule = optional({ keys: from([['metadata.name'], []] as const), values: subset(VALUES) });

function rules(terms: fc.Arbitrary<unknown>, minKeys: number) {
  const ofTime = fc.oneof(
    { weight: 4, arbitrary: fc.record({ nodeSelectorTerms: terms }) },
    { weight: 1, arbitrary: fc.constant({}) },
  );
  const times = (one: fc.Arbitrary<unknown>) => optional({ [REQUIRED]: one, [PREFERRED]: one });
  return optional({
    nodeAffinities: times(ofTime),
    podAffinities: times(fc.constant({})),
    podAntiAffinities: times(fc.constant({})),
  }).filter((written) => Object.keys(written).length >= minKeys);
}

const requiredTerm = fc.record({ matchExpressions: few(expressionRule, 1) });
const allowedTerm = optional({ matchExpressions: few(expressionRule), matchFields: few(fieldRule) });

export const affinityPart: fc.Arbitrary<Part> = part({
  required: rules(few(requiredTerm, 1), 1).map((affinities) => ({ affinities })),
  allowed: rules(few(allowedTerm), 0).map((affinities) => ({ affinities })),
  default: fc
    .tuple(optional(affinity(1)), fc.boolean())
    .map(([chosen, isDraft]) => ({ affinity: isDraft ? draft(chosen) : chosen })),
  pod: fc
    .oneof(
      { weight: 9, arbitrary: optional(affinity(0)) },
      { weight: 1, arbitrary: fc.constant(null) },
      // A kind that is not known yet.
      {
        weight: 1,
        arbitrary: fc.record({ rackAffinity: fc.record({ host: from([[], ['rack-1'], 'rack-1', null]) }) }),
      },
    )
    .map((chosen) => ({ affinity: chosen })),
});
