import { describe, expect, it } from 'vitest';
import {
  pod,
  policiesOf,
  proposalPolicies,
  reasonsFor,
  reasonsOf,
  review,
} from '../../../support/scheduling-policies.ts';

const judged = reasonsFor;

describe('the scheduler of a pod', () => {
  it('is rejected if no policy mentions schedulers, and the message says so', () => {
    expect(judged('{schedulerName: green}', {})).toEqual([
      'schedulerName: expected nothing, got "green" (no scheduling policy of the account mentions it)',
    ]);
    expect(judged('{schedulerName: green}')).toHaveLength(1);
    expect(judged('{schedulerName: default-scheduler}', 'allowed: {priorityClassNames: []}')).toHaveLength(1);
  });

  it.each([undefined, null, ''])(
    'need not be named where none is required: %j is fine even where nothing is allowed',
    (schedulerName) => {
      expect(judged({ schedulerName })).toEqual([]);
      expect(judged({ schedulerName }, 'allowed: {schedulerNames: [green]}')).toEqual([]);
    },
  );

  it('must be one of the required ones', () => {
    const required = proposalPolicies(2);
    for (const schedulerName of ['green-scheduler', 'my-scheduler']) {
      expect(review(required, pod({ schedulerName })).allowed).toBe(true);
    }
    expect(reasonsOf(review(required, pod({ schedulerName: 'blue' })))).toEqual([
      'schedulerName: expected green-scheduler or my-scheduler, got "blue" (scheduling policy example)',
    ]);
  });

  it.each([undefined, null, ''])('is refused as nothing where one is required: %j', (schedulerName) => {
    expect(reasonsOf(review(proposalPolicies(2), pod({ schedulerName })))).toEqual([
      'schedulerName: expected green-scheduler or my-scheduler, got nothing (scheduling policy example)',
    ]);
  });

  it('is rejected if another one is required, even if it is allowed', () => {
    const both = '{required: {schedulerNames: [green]}, allowed: {schedulerNames: [blue]}}';
    expect(judged('{schedulerName: blue}', both)).toEqual([
      'schedulerName: expected green, got "blue" (scheduling policy a)',
    ]);
    expect(
      judged('{schedulerName: blue}', 'required: {schedulerNames: [green]}', 'allowed: {schedulerNames: []}'),
    ).toEqual(['schedulerName: expected green, got "blue" (scheduling policy a)']);
    expect(judged('{schedulerName: green}', both)).toEqual([]);
  });

  it('must be allowed by any policy', () => {
    const allowed = proposalPolicies(4);
    expect(review(allowed, pod({ schedulerName: 'my-scheduler' })).allowed).toBe(true);
    expect(reasonsOf(review(allowed, pod({ schedulerName: 'default-scheduler' })))).toEqual([
      'schedulerName: expected green-scheduler or my-scheduler, got "default-scheduler" (scheduling policy example)',
    ]);
    expect(
      judged('{schedulerName: c}', 'allowed: {schedulerNames: [b]}', 'allowed: {schedulerNames: [d]}'),
    ).toEqual(['schedulerName: expected b or d, got "c" (scheduling policies a and b)']);
  });

  it('may be any if a policy allows an empty list', () => {
    expect(review(proposalPolicies(5), pod({ schedulerName: 'whatever' })).allowed).toBe(true);
    for (const specs of [
      ['allowed: {schedulerNames: []}', 'allowed: {schedulerNames: [blue]}'],
      ['allowed: {schedulerNames: [blue]}', 'allowed: {schedulerNames: []}'],
    ]) {
      expect(judged('{schedulerName: whatever}', ...specs)).toEqual([]);
    }
  });

  it('is the default if the pod names none, which is thereby allowed', () => {
    const [example] = proposalPolicies(6);
    const policies = example === undefined ? [] : [example];
    expect(review(policies, pod()).pod.spec.schedulerName).toBe('my-scheduler');
    expect(review(policies, pod({ schedulerName: 'my-scheduler' })).allowed).toBe(true);
    expect(reasonsOf(review(policies, pod({ schedulerName: 'green' })))).toEqual([
      'schedulerName: expected my-scheduler, got "green" (scheduling policy example)',
    ]);
  });

  it('is rejected if the default is not one of the required ones', () => {
    expect(judged({}, 'required: {schedulerNames: [green]}', 'default: {schedulerName: blue}')).toEqual([
      'schedulerName: expected green, got "blue" (scheduling policy a)',
    ]);
  });

  it('is compared literally', () => {
    for (const schedulerName of ['Green', 'green ', 'gre', 'constructor', '__proto__']) {
      expect(judged({ schedulerName }, 'allowed: {schedulerNames: [green]}')).toHaveLength(1);
    }
  });
});

describe('the name that the API server fills in', () => {
  const chosen = (...specs: string[]) =>
    review(policiesOf(...specs), pod('{schedulerName: default-scheduler}')).pod.spec.schedulerName;

  it('is replaced if it is not allowed and there is a default', () => {
    expect(chosen('default: {schedulerName: green}')).toBe('green');
    expect(chosen('{allowed: {schedulerNames: [blue]}, default: {schedulerName: green}}')).toBe('green');
    expect(chosen('{required: {schedulerNames: [green]}, default: {schedulerName: green}}')).toBe('green');
    expect(
      chosen(
        '{required: {schedulerNames: [green]}, allowed: {schedulerNames: []}}',
        'default: {schedulerName: green}',
      ),
    ).toBe('green');
  });

  it('is replaced if every scheduler is allowed and there is a default', () => {
    expect(chosen('{allowed: {schedulerNames: []}, default: {schedulerName: green}}')).toBe('green');
    expect(chosen('allowed: {schedulerNames: []}')).toBe('default-scheduler');
    expect(chosen('default: {schedulerName: green}', 'allowed: {schedulerNames: []}')).toBe('green');
  });

  it('stays if a policy lists it', () => {
    for (const spec of [
      '{allowed: {schedulerNames: [default-scheduler]}, default: {schedulerName: green}}',
      '{required: {schedulerNames: [default-scheduler, green]}, default: {schedulerName: green}}',
    ]) {
      expect(chosen(spec)).toBe('default-scheduler');
    }
    expect(chosen('default: {schedulerName: green}', 'allowed: {schedulerNames: [default-scheduler]}')).toBe(
      'default-scheduler',
    );
  });

  it('is judged like any other if there is no default', () => {
    expect(judged('{schedulerName: default-scheduler}', 'required: {schedulerNames: [green]}')).toEqual([
      'schedulerName: expected green, got "default-scheduler" (scheduling policy a)',
    ]);
    expect(review(proposalPolicies(28), pod('{schedulerName: default-scheduler}')).allowed).toBe(true);
  });

  it('is the only such name', () => {
    expect(judged('{schedulerName: Default-Scheduler}', 'default: {schedulerName: green}')).toHaveLength(1);
  });
});

describe('the node that a pod names itself', () => {
  it.each([
    ['nothing', []],
    ['some schedulers are allowed', ['allowed: {schedulerNames: [green, default-scheduler]}']],
    ['a scheduler is the default', ['default: {schedulerName: green}']],
  ])('is refused where %s', (_, specs) => {
    expect(judged('{schedulerName: "", nodeName: node-1}', ...specs).join()).toMatch(
      /^nodeName: expected nothing, because a pod that names its node bypasses every scheduler \(/,
    );
  });

  it('is rejected if a scheduler is required, whatever is allowed', () => {
    expect(
      judged(
        '{schedulerName: green, nodeName: node-1}',
        'required: {schedulerNames: [green]}',
        'allowed: {schedulerNames: [], affinities: {}, tolerations: []}',
      ),
    ).toEqual([
      'nodeName: expected nothing, because a pod that names its node bypasses every scheduler (scheduling policy a)',
    ]);
  });

  const node = (...names: string[]) => {
    const term = `{matchFields: [{keys: [metadata.name], operators: [In], values: [${names.join()}]}]}`;
    return `affinities: {nodeAffinities: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [${term}]}}}`;
  };
  const TAINTS = 'tolerations: [{operators: [Exists], effects: [NoSchedule]}]';

  it('is allowed if all schedulers, all NoSchedule taints and the node are', () => {
    for (const spec of [
      'allowed: {schedulerNames: [], affinities: {}, tolerations: []}',
      `allowed: {schedulerNames: [], affinities: {nodeAffinities: {}}, ${TAINTS}}`,
      `allowed: {schedulerNames: [], ${node('node-1', 'node-2')}, ${TAINTS}}`,
    ]) {
      expect(judged('{nodeName: node-1}', spec)).toEqual([]);
    }
    expect(
      judged(
        '{nodeName: node-1}',
        'allowed: {schedulerNames: [x], affinities: {}}',
        `allowed: {schedulerNames: [], ${TAINTS}}`,
      ),
    ).toEqual([]);
  });

  it('is checked against the rules for nodes', () => {
    const schedulers = 'schedulerNames: [], tolerations: []';
    expect(judged('{nodeName: node-1}', `allowed: {${schedulers}}`)).toEqual([
      'nodeName: expected nothing, got "metadata.name" In "node-1" (no scheduling policy of the account mentions it)',
    ]);
    expect(judged('{nodeName: node-1}', `allowed: {${schedulers}, ${node('node-2')}}`)).toEqual([
      'nodeName: expected an expression that is allowed (metadata.name In node-2), got "metadata.name" In "node-1" (scheduling policy a)',
    ]);
    // Labels say nothing of names.
    expect(judged('{nodeName: node-1}', `allowed: {${schedulers}, nodeSelectors: {}}`)).toHaveLength(1);
    const preferred = 'affinities: {nodeAffinities: {preferredDuringSchedulingIgnoredDuringExecution: {}}}';
    expect(judged('{nodeName: node-1}', `allowed: {${schedulers}, ${preferred}}`)).toHaveLength(1);
  });

  it('is rejected if the pod may not tolerate all taints', () => {
    expect(judged('{nodeName: node-1}', 'allowed: {schedulerNames: [], affinities: {}}')).toEqual([
      'nodeName: expected nothing, because a pod that names its node bypasses taints, and it may not tolerate all of them (no scheduling policy of the account mentions it)',
    ]);
    const some = 'tolerations: [{keys: [gpu], effects: [NoSchedule]}, {effects: [NoExecute]}]';
    expect(
      judged('{nodeName: node-1}', `allowed: {schedulerNames: [], affinities: {}, ${some}}`),
    ).toHaveLength(1);
  });

  it.each([null, ''])('is none where it is %j', (nodeName) => {
    expect(judged({ nodeName })).toEqual([]);
  });
});

describe('the priority class of a pod', () => {
  it('is rejected if no policy mentions classes', () => {
    expect(judged('{priorityClassName: gold}', 'allowed: {schedulerNames: []}')).toEqual([
      'priorityClassName: expected nothing, got "gold" (no scheduling policy of the account mentions it)',
    ]);
  });

  it('is the only one that is required, and so by default', () => {
    const single = proposalPolicies(12);
    expect(review(single, pod()).pod.spec.priorityClassName).toBe('high-priority');
    expect(review(single, pod('{priorityClassName: high-priority}')).allowed).toBe(true);
    expect(reasonsOf(review(single, pod('{priorityClassName: low-priority}')))).toEqual([
      'priorityClassName: expected high-priority, got "low-priority" (scheduling policy example)',
    ]);
  });

  it('is reported as missing if it is required and there is no default', () => {
    expect(judged({}, 'required: {priorityClassNames: [gold, silver, bronze]}')).toEqual([
      'priorityClassName: expected gold, silver or bronze, got nothing (scheduling policy a)',
    ]);
  });

  it('may be any or none if all are allowed', () => {
    for (const spec of ['{priorityClassName: whatever}', '{}']) {
      expect(review(proposalPolicies(13), pod(spec)).allowed).toBe(true);
    }
  });

  it('gives default-scheduler no special meaning', () => {
    expect(
      judged('{priorityClassName: default-scheduler}', 'default: {priorityClassName: gold}'),
    ).toHaveLength(1);
  });
});
