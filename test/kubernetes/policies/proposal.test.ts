/** Every YAML example of the proposal, verbatim, in its order. */
import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { formatProblem } from '../../../src/base/errors.ts';
import {
  type PolicyDocuments,
  readPolicyDocuments,
} from '../../../src/kubernetes/policies/documents/documents.ts';
import type { SchedulingPolicy } from '../../../src/kubernetes/policies/policy.ts';
import { projectFile } from '../../support/files.ts';

const FOLDER = projectFile('test/fixtures/kubernetes/proposal');
const FILES = readdirSync(FOLDER).sort();
const ARCH = 'beta.kubernetes.io/arch';
const OS = 'beta.kubernetes.io/os';
const RBAC = 'rbac.authorization.k8s.io';
const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';

type Sections = Partial<Omit<SchedulingPolicy, 'name' | 'group'>>;

/** What is read of a file. `problems`: without its folder and the rest of its name. */
interface Reading {
  readonly policies?: readonly SchedulingPolicy[];
  readonly roles?: PolicyDocuments['roles'];
  readonly bindings?: PolicyDocuments['bindings'];
  readonly problems?: readonly string[];
}

function policy(
  name: string,
  { required = {}, allowed = {}, default: defaults = {} }: Sections,
): SchedulingPolicy {
  return { name, group: 'extensions', required, allowed, default: defaults };
}

const named = (name: string, sections: Sections): Reading => ({ policies: [policy(name, sections)] });
/** It has the name of its file. */
const nameless = (number: string, sections: Sections) =>
  named(FILES.find((file) => file.startsWith(number))?.replace('.yaml', '') ?? '', sections);
const refused = (...problems: string[]): Reading => ({ problems });

const A = policy('schedpol-a', {
  required: { nodeSelectors: { [ARCH]: ['amd64', 'arm64'] } },
  allowed: { nodeSelectors: { disk: ['ssd'] } },
  default: { nodeSelector: { [ARCH]: 'amd64' } },
});
const B = policy('schedpol-b', {
  required: {
    priorityClassNames: ['bronze', 'gold', 'silver'],
    nodeSelectors: { [ARCH]: ['amd64', 'arm64', 'i386'], [OS]: ['Linux', 'Windows'] },
  },
  allowed: { nodeSelectors: { disk: ['sata'] } },
  default: { priorityClassName: 'bronze', nodeSelector: { [ARCH]: 'i386', [OS]: 'Linux' } },
});
const AN_EMPTY_LIST =
  'expected at least one name, because nothing satisfies an empty list, got an empty list';
const termsFor = (...terms: (readonly [key: string, ...values: string[]])[]) => ({
  nodeSelectorTerms: terms.map(([key, ...values]) => ({
    matchExpressions: [{ keys: [key], operators: ['In' as const], values }],
  })),
});
const defaultFor = (...terms: (readonly [key: string, ...values: string[]])[]) => ({
  nodeSelectorTerms: terms.map(([key, ...values]) => ({
    matchExpressions: [{ key, operator: 'In', values }],
  })),
});

const READINGS: Readonly<Record<string, Reading>> = {
  '01': named('my-schedpol', {}),
  '02': nameless('02', { required: { schedulerNames: ['green-scheduler', 'my-scheduler'] } }),
  '03': refused(`:4: spec.required.SchedulerNames: ${AN_EMPTY_LIST}`),
  '04': nameless('04', { allowed: { schedulerNames: ['green-scheduler', 'my-scheduler'] } }),
  '05': nameless('05', { allowed: { schedulerNames: [] } }),
  '06': nameless('06', { default: { schedulerName: 'my-scheduler' } }),
  '07': nameless('07', {
    allowed: {
      tolerations: [
        { keys: ['mykey'], operators: ['Equal'], values: ['value'], effects: ['NoSchedule'] },
        { keys: ['other_key'], operators: ['Exists'], effects: ['NoExecute'] },
      ],
    },
  }),
  '08': nameless('08', {
    allowed: {
      tolerations: [
        { keys: [], operators: [], values: [], effects: ['PreferNoSchedule'] },
        { keys: [], operators: ['Exists'], effects: ['NoSchedule'] },
      ],
    },
  }),
  '09': nameless('09', { allowed: { tolerations: [] } }),
  '10': nameless('10', { allowed: { tolerations: [{ keys: [], operators: [], values: [], effects: [] }] } }),
  '11': nameless('11', {
    default: {
      tolerations: [
        { key: 'mykey', operator: 'Equal', value: 'value', effect: 'NoSchedule' },
        { key: 'mykey', operator: 'Equal', value: 'other_value', effect: 'NoSchedule' },
        { key: 'other_key', operator: 'Exists', effect: 'NoExecute' },
      ],
    },
  }),
  '12': nameless('12', {
    required: { priorityClassNames: ['high-priority'] },
    default: { priorityClassName: 'high-priority' },
  }),
  '13': nameless('13', { allowed: { priorityClassNames: [] } }),
  '14': refused(`:4: spec.required.priorityClasseNames: ${AN_EMPTY_LIST}`),
  '15': nameless('15', {
    required: { nodeSelectors: { [ARCH]: ['amd64', 'arm64'] } },
    allowed: {
      nodeSelectors: { disk: ['ssd', 'hdd'], 'failure-domain.beta.kubernetes.io/region': [] },
    },
    default: { nodeSelector: { [ARCH]: 'amd64' } },
  }),
  '16': nameless('16', {
    allowed: {
      nodeSelectors: {
        'failure-domain.beta.kubernetes.io/zone': ['eu-west-1a', 'eu-west-1b', 'eu-west-1c'],
      },
    },
  }),
  // Its default is written with lists of one.
  '17': nameless('17', {
    required: { affinities: { nodeAffinities: { [REQUIRED]: termsFor([ARCH, 'amd64', 'arm64']) } } },
    allowed: {
      affinities: {
        nodeAffinities: {
          [REQUIRED]: {
            nodeSelectorTerms: [
              {
                matchExpressions: [
                  {
                    keys: ['failure-domain.beta.kubernetes.io/region', 'kubernetes.io/authorized-region'],
                    operators: ['In', 'NotIn'],
                    values: ['eu-2', 'us-1'],
                  },
                ],
              },
            ],
          },
        },
        podAntiAffinities: {},
      },
    },
    default: { affinity: { nodeAffinity: { [REQUIRED]: defaultFor([ARCH, 'amd64']) } } },
  }),
  '18': refused(
    `:16: spec.allowed.affinities.nodeAffinities.${REQUIRED}.podAntiAffinities: ` +
      'nested too deep: it belongs under spec.allowed.affinities',
  ),
  '19': nameless('19', { allowed: { affinities: {} } }),
  '20': nameless('20', {
    allowed: { affinities: { nodeAffinities: {}, podAffinities: {}, podAntiAffinities: {} } },
  }),
  '21': nameless('21', { allowed: { affinities: { nodeAffinities: {} } } }),
  '22': { policies: [A, B] },
  '23': nameless('23', {
    required: {
      priorityClassNames: ['bronze', 'gold', 'silver'],
      nodeSelectors: { [ARCH]: ['amd64', 'arm64'], [OS]: ['Linux', 'Windows'] },
    },
    allowed: { nodeSelectors: { disk: ['ssd', 'sata'] } },
    default: { priorityClassName: 'bronze', nodeSelector: { [ARCH]: 'amd64', [OS]: 'Linux' } },
  }),
  '24': { policies: [A, B] },
  '25': { policies: [A] },
  '26': { policies: [A, B] },
  '27': nameless('27', {
    required: {
      priorityClassNames: ['bronze', 'gold', 'silver'],
      nodeSelectors: { [ARCH]: ['amd64', 'arm64'] },
    },
    allowed: { nodeSelectors: { disk: ['ssd'] } },
    default: { priorityClassName: 'bronze', nodeSelector: { [ARCH]: 'amd64' } },
  }),
  '28': named('restricted', { allowed: { schedulerNames: ['default-scheduler'] } }),
  '29': named('restricted-multiarch-by-node-selector', {
    required: {
      schedulerNames: ['default-scheduler'],
      nodeSelectors: { [ARCH]: ['amd64', 'arm64'], [OS]: ['Linux', 'Windows'] },
    },
    default: {
      schedulerName: 'default-scheduler',
      nodeSelector: { [ARCH]: 'amd64', [OS]: 'Linux' },
    },
  }),
  '30': named('restricted-multiarch-by-affinity', {
    required: {
      schedulerNames: ['default-scheduler'],
      affinities: {
        nodeAffinities: { [REQUIRED]: termsFor([ARCH, 'amd64', 'arm64'], [OS, 'Linux', 'Windows']) },
      },
    },
    default: {
      schedulerName: 'default-scheduler',
      affinity: { nodeAffinity: { [REQUIRED]: defaultFor([ARCH, 'amd64'], [OS, 'Linux']) } },
    },
  }),
  '31': named('privileged', {
    allowed: {
      schedulerNames: [],
      priorityClassNames: [],
      nodeSelectors: {},
      tolerations: [],
      affinities: {},
    },
  }),
  // Alone, what these three refer to is not there.
  '32': {
    roles: [
      {
        kind: 'ClusterRole',
        name: 'sp:restricted',
        namespace: undefined,
        rules: [
          {
            apiGroups: ['extensions'],
            resources: ['schedulingpolicies'],
            verbs: ['use'],
            resourceNames: ['restricted'],
          },
        ],
      },
    ],
    problems: [':14: rules[0].resourceNames[0]: there is no SchedulingPolicy "restricted"'],
  },
  '33': {
    bindings: [
      {
        kind: 'ClusterRoleBinding',
        name: 'sp:restricted',
        namespace: undefined,
        roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: 'sp:restricted' } as {
          kind: string;
          name: string;
        },
        subjects: [{ kind: 'Group', name: 'system:authenticated', apiGroup: RBAC }],
      },
    ],
    problems: [':12: roleRef.name: there is no ClusterRole "sp:restricted"'],
  },
  '34': {
    bindings: [
      {
        kind: 'RoleBinding',
        name: 'sp:kube-system-privileged',
        namespace: 'kube-system',
        roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: 'sp:privileged' } as {
          kind: string;
          name: string;
        },
        subjects: [{ kind: 'Group', name: 'system:serviceaccounts:kube-system', apiGroup: RBAC }],
      },
    ],
    problems: [':13: roleRef.name: there is no ClusterRole "sp:privileged"'],
  },
};

describe('an example of the proposal', () => {
  it('is in the table', () => {
    expect(FILES).toHaveLength(34);
    expect(FILES.map((file) => file.slice(0, 2))).toEqual(Object.keys(READINGS).sort());
  });

  it.each(FILES.map((file) => [file, READINGS[file.slice(0, 2)] ?? {}] as const))(
    'is accepted or rejected as the table says: %s',
    (file, { policies = [], roles = [], bindings = [], problems = [] }) => {
      const path = `${FOLDER}/${file}`;
      const read = readPolicyDocuments([path]);
      expect(read.problems.map((problem) => formatProblem(problem).replace(path, ''))).toEqual(problems);
      expect(read).toMatchObject({ policies, roles, bindings });
      expect(read.policies).toStrictEqual(policies);
    },
  );
});
