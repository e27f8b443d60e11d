/** Mistakes that people make in the specs of policies, and what kubectl says of each. */
export const POLICY_MISTAKES: readonly (readonly [words: string, spec: unknown])[] = [
  [
    'spec.required.nodeSelector: unknown field; the nearest right name is "nodeSelectors"',
    { required: { nodeSelector: { disk: ['ssd'] } } },
  ],
  [
    'spec.allowed.tolerations[0].key: unknown field; the nearest right name is "keys"',
    { allowed: { tolerations: [{ key: 'gpu' }] } },
  ],
  [
    'spec.default.nodeSelectors: unknown field; the nearest right name is "nodeSelector"',
    { default: { nodeSelectors: { a: 'b' } } },
  ],
  [
    'spec.allowed.schedulernames: unknown field; the nearest right name is "schedulerNames"',
    { allowed: { schedulernames: ['a'] } },
  ],
  ['the nearest right name is "schedulerNames"', { allowed: { 'schedulerNam\u00e9s': ['a'] } }],
  ['spec.\\u202ea: unknown field', { '\u202ea': 1 }],
  ['spec: expected a mapping, got an empty list', []],
  ['spec: expected a mapping, got ""', ''],
  [
    'spec.allowed.schedulerNames: expected a list, got "default-scheduler"',
    { allowed: { schedulerNames: 'default-scheduler' } },
  ],
  ['spec.allowed.schedulerNames[0]: expected a string, got 1', { allowed: { schedulerNames: [1] } }],
  ['spec.allowed.schedulerNames[0]: expected a string, got null', { allowed: { schedulerNames: [null] } }],
  [
    'spec.required.nodeSelectors.disk: expected a list, got "ssd"',
    { required: { nodeSelectors: { disk: 'ssd' } } },
  ],
  ['spec.required.schedulerNames: expected at least one name', { required: { schedulerNames: [] } }],
  ['spec.required.nodeSelectors: expected at least one label', { required: { nodeSelectors: {} } }],
  [
    'spec.allowed.SchedulerNames: expected nothing, because schedulerNames is set too',
    { allowed: { schedulerNames: ['a'], SchedulerNames: ['b'] } },
  ],
  [
    'spec.allowed.tolerations[0].operators[0]: expected one of Equal, Exists, Lt, Gt, got "exists"',
    { allowed: { tolerations: [{ operators: ['exists'] }] } },
  ],
  [
    'spec.default.tolerations[0].value: expected nothing, because the operator is Exists',
    { default: { tolerations: [{ key: 'a', operator: 'Exists', value: 'x' }] } },
  ],
  [
    'spec.default.tolerations[0].effect: expected one of NoSchedule, PreferNoSchedule, NoExecute, got "noschedule"',
    { default: { tolerations: [{ key: 'a', effect: 'noschedule' }] } },
  ],
  [
    'podAffinities: nested too deep: it belongs under spec.allowed.affinities',
    { allowed: { affinities: { nodeAffinities: { podAffinities: {} } } } },
  ],
  ['spec.default.nodeSelector: expected a label name, got ""', { default: { nodeSelector: { '': 'x' } } }],
  [
    'spec.allowed.x: unknown field',
    { allowed: { schedulerNames: Array(60_000).fill('default-scheduler'), x: 1 } },
  ],
];
