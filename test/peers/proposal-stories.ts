/** What examples of the proposal let pods do in a cluster where everybody may use `restricted`, too. The others differ in nothing that an API server takes part in. */

/** One pod: its spec, and what the cluster says of it. */
export type Told =
  /** It is created, and has this in its spec. */
  { readonly spec: object; readonly becomes: object } | { readonly spec: object; readonly refused: RegExp };

export interface Story {
  /** The file of test/fixtures/kubernetes/proposal begins with it. */
  readonly example: string;
  /** Default: `deep`. */
  readonly strategy?: 'first' | 'simple';
  readonly pods: readonly Told[];
}

const ARCH = 'beta.kubernetes.io/arch';
const OS = 'beta.kubernetes.io/os';
const REGION = 'failure-domain.beta.kubernetes.io/region';

const fits = (spec: object, becomes: object = spec): Told => ({ spec, becomes });
const refused = (spec: object, reason: RegExp): Told => ({ spec, refused: reason });
const scheduler = (schedulerName: string) => ({ schedulerName });
const tolerates = (...tolerations: object[]) => ({ tolerations });
const labels = (nodeSelector: Readonly<Record<string, string>>) => ({ nodeSelector });
const nodes = (...matchExpressions: object[]) => ({
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions }] },
    },
  },
});
const is = (key: string, ...values: string[]) => ({ key, operator: 'In', values });
const isNot = (key: string, ...values: string[]) => ({ key, operator: 'NotIn', values });
const others = (kind: 'podAffinity' | 'podAntiAffinity') => ({
  affinity: {
    [kind]: {
      requiredDuringSchedulingIgnoredDuringExecution: [
        { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { a: 'b' } } },
      ],
    },
  },
});
const ANYTHING = [
  scheduler('own'),
  { priorityClassName: 'gold' },
  labels({ disk: 'tape' }),
  tolerates({ operator: 'Exists' }),
  nodes({ key: 'gpu', operator: 'Exists' }),
  others('podAffinity'),
  others('podAntiAffinity'),
];

export const STORIES: readonly Story[] = [
  { example: '02', pods: [fits(scheduler('green-scheduler')), refused({}, /schedulerName: expected/)] },
  {
    example: '06',
    pods: [
      // `restricted` lists the name that the API server fills in, so that it counts as asked for.
      fits({}, scheduler('default-scheduler')),
      fits(scheduler('my-scheduler')),
      refused(scheduler('blue'), /schedulerName: expected/),
    ],
  },
  {
    example: '11',
    pods: [
      {
        spec: {},
        becomes: tolerates(
          ...['value', 'other_value'].map((value) => ({
            key: 'mykey',
            operator: 'Equal',
            value,
            effect: 'NoSchedule',
          })),
          { key: 'other_key', operator: 'Exists', effect: 'NoExecute' },
        ),
      },
      refused(tolerates({ key: 'other_key', operator: 'Exists' }), /tolerations\[0\]/),
    ],
  },
  {
    example: '12',
    pods: [
      fits({}, { priorityClassName: 'high-priority', priority: 1000 }),
      fits({ priorityClassName: 'high-priority' }),
      refused({ priorityClassName: 'gold' }, /priorityClassName: expected/),
    ],
  },
  {
    example: '15',
    pods: [
      fits({}, labels({ [ARCH]: 'amd64' })),
      fits(labels({ [ARCH]: 'arm64', disk: 'hdd', [REGION]: 'anywhere' })),
      refused(labels({ [ARCH]: 'riscv' }), /nodeSelector beta\.kubernetes\.io\/arch: expected/),
      refused(labels({ [ARCH]: 'amd64', disk: 'tape' }), /nodeSelector disk: expected/),
    ],
  },
  {
    example: '17',
    pods: [
      fits({}, nodes(is(ARCH, 'amd64'))),
      fits(nodes(is(ARCH, 'arm64'), isNot(REGION, 'eu-2', 'us-1'))),
      fits({ affinity: { ...nodes(is(ARCH, 'arm64')).affinity, ...others('podAntiAffinity').affinity } }),
      refused(nodes(is(ARCH, 'riscv')), /affinity\.nodeAffinity/),
      refused(nodes(is(ARCH, 'arm64'), is(REGION, 'eu-3')), /affinity\.nodeAffinity/),
      refused(
        { affinity: { ...nodes(is(ARCH, 'arm64')).affinity, ...others('podAffinity').affinity } },
        /affinity\.podAffinity/,
      ),
    ],
  },
  {
    example: '22',
    pods: [
      fits({}, { nodeSelector: { [ARCH]: 'amd64', [OS]: 'Linux' }, priorityClassName: 'bronze' }),
      fits({ ...labels({ [ARCH]: 'arm64', [OS]: 'Windows', disk: 'sata' }), priorityClassName: 'gold' }),
      fits({ ...labels({ [ARCH]: 'arm64', [OS]: 'Windows', disk: 'ssd' }), priorityClassName: 'gold' }),
      refused(labels({ [ARCH]: 'i386' }), /nodeSelector beta\.kubernetes\.io\/arch: expected/),
    ],
  },
  {
    example: '24',
    strategy: 'first',
    pods: [
      // Only the first policy by name counts. It names no scheduler, so that it lets no pod be.
      refused(labels({ [ARCH]: 'amd64', disk: 'ssd' }), /: schedulerName: [^;]*$/m),
      refused(labels({ [ARCH]: 'amd64', disk: 'sata' }), /nodeSelector disk: /),
    ],
  },
  {
    example: '26',
    strategy: 'simple',
    pods: [
      // `restricted` comes first and has `allowed.schedulerNames`; of the two, the first has the node selectors.
      fits({}, { nodeSelector: { [ARCH]: 'amd64' }, priorityClassName: 'bronze' }),
      fits({ ...labels({ [ARCH]: 'arm64', disk: 'ssd' }), priorityClassName: 'silver' }),
      refused(labels({ [ARCH]: 'arm64', disk: 'sata' }), /nodeSelector disk: /),
      refused(labels({ [ARCH]: 'amd64', [OS]: 'Linux' }), /nodeSelector beta\.kubernetes\.io\/os: /),
    ],
  },
  { example: '31', pods: ANYTHING.map((spec) => fits(spec)) },
];

/** Examples that the cluster refuses when they are applied, with its words. */
export const REFUSED: Readonly<Record<string, RegExp>> = {
  '03': /spec\.required\.SchedulerNames/,
  '14': /spec\.required\.priorityClasseNames/,
  '18': /podAntiAffinities/,
};
