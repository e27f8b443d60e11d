import { describe, expect, it } from 'vitest';
import { MAX_PROBLEMS, validateConfig } from '../../../src/skypilot/schema/validate.ts';
import { rows } from '../../support/rows.ts';
import { problemsIn as problemsOf } from './problems.ts';

const problemsIn = (yaml: string) => problemsOf(validateConfig, 'config.yaml', yaml);

describe('a configuration', () => {
  it.for([
    ['nothing', '{}'],
    ['every form of a cloud', 'allowed_clouds: [AWS, Kubernetes, ssh]'],
    ['1.0 as a whole number', 'kubernetes: {provision_timeout: 600.0}'],
    ['a whole number of any size', 'kubernetes: {provision_timeout: 123456789012345678901234567890}'],
    ['anything in a pod', 'kubernetes: {pod_config: {spec: {any: [1, {b: null, c: 2026-01-01}]}}}'],
    ['what looks like another type and is none', 'aws: {labels: {a: 0o17}}'],
    ['what looks like a text and is a number', 'kubernetes: {provision_timeout: 1:30}'],
    ['yes for true', 'kubernetes: {dws: {enabled: yes}}'],
    ['null where SkyPilot takes it', 'gcp: {vpc_name: null}'],
    ['a policy of a service', 'admin_policy: https://policies.example.org/skypilot'],
    ['labels of any name', 'kubernetes: {custom_metadata: {labels: {__proto__: a, constructor: b}}}'],
  ] as const)('may have %s', ([, yaml]) => {
    expect(problemsIn(yaml)).toEqual([]);
  });

  it.for(
    rows`
      admin_polcy: x → admin_polcy: unknown key; the nearest right key is "admin_policy"
      aws: {labels: {a: on}} → aws.labels.a: expected a string, got true
      kubernetes: {provision_timeout: .inf} → kubernetes.provision_timeout: expected a whole number, got null
      kubernetes: {provision_timeout: 0o17} → kubernetes.provision_timeout: expected a whole number, got "0o17"
      aws: {labels: {a: 2026-01-01}} → aws.labels.a: expected a string, got the date 2026-01-01; for a text, write it in quotes
      Kubernetes: {} → Kubernetes: unknown key; the nearest right key is "kubernetes"
      kubernetes: {provison_timeout: 5} → kubernetes.provison_timeout: unknown key; the nearest right key is "provision_timeout"
      kubernetes: {context_configs: {west: {pod_confg: {}}}} → kubernetes.context_configs.west.pod_confg: unknown key; the nearest right key is "pod_config"
      __proto__: {} → __proto__: unknown key
  `,
  )('names the right key: %s', ([yaml, problem]) => {
    expect(problemsIn(yaml)).toEqual([`config.yaml:1: ${problem}`]);
  });

  it.for([
    ['kubernetes:\npod_config:\n  spec: {}', 2, 'pod_config', 'below kubernetes: check the indentation'],
    [
      'kubernetes: {ports: ingress}\nprovision_timeout: 5',
      2,
      'provision_timeout',
      'below kubernetes: check the indentation',
    ],
    [
      'kubernetes:\n  context_configs:\n    west: {}\n  rbac: {}',
      4,
      'kubernetes.rbac',
      'to the top level: check the indentation',
    ],
    ['use_internal_ips: true\naws: {}', 1, 'use_internal_ips', 'below aws: check the indentation'],
    ['submit_as_user: true', 1, 'submit_as_user', 'below slurm'],
  ] as const)('finds a block at the wrong depth: %s', ([yaml, line, key, place]) => {
    expect(problemsIn(yaml)).toEqual([`config.yaml:${line}: ${key}: unknown key here; it belongs ${place}`]);
  });

  it.for(
    rows`
      kubernetes: {provision_timeout: soon} → kubernetes.provision_timeout: expected a whole number, got "soon"
      kubernetes: {provision_timeout: 1.5} → kubernetes.provision_timeout: expected a whole number, got 1.5
      kubernetes: → kubernetes: expected a mapping, got nothing
      allowed_clouds: aws → allowed_clouds: expected a list, got "aws"
      gcp: {vpc_name: My_VPC} → gcp.vpc_name: expected the name of a VPC such as my-vpc or my-project/my-vpc (lowercase letters, digits and hyphens) or null, got "My_VPC"
      kubernetes: {ports: ingres} → kubernetes.ports: expected one of ingress, loadbalancer, podip, got "ingres"; the nearest right one is "ingress"
      kubernetes: {enable_docker: some} → kubernetes.enable_docker: expected true or false, one of ALL, BUILD or a mapping, got "some"
      kubernetes: {enable_docker: {mode: ALL, volume: x}} → kubernetes.enable_docker.volume: unknown key; expected one of mode, cache_volume
      jobs: {controller: {resources: {infra: awss/us-east-1}}} → jobs.controller.resources.infra: expected a cloud with optional region and zone such as aws/us-east-1 or k8s/my-context, got "awss/us-east-1"; the nearest right one is "aws"
      jobs: {controller: {resources: {autostop: {idle_minute: 5}}}} → jobs.controller.resources.autostop.idle_minute: unknown key; the nearest right key is "idle_minutes"
      admin_policy: 5 → admin_policy: expected a dotted name such as my_package.MyPolicy or an http or https URL, got 5
      kubernetes: {custom_metadata: {namespace: a}} → kubernetes.custom_metadata: expected none of the keys name, namespace in it
  `,
  )('says what was expected: %s', ([yaml, problem]) => {
    expect(problemsIn(yaml)).toEqual([`config.yaml:1: ${problem}`]);
  });

  it('names clouds that do not exist', () => {
    const [problem, ...further] = problemsIn('allowed_clouds:\n- aws\n- kubernets');
    expect(further).toEqual([]);
    expect(problem).toMatch(
      /^config\.yaml:3: allowed_clouds\[1\]: expected a cloud \(aws, .* more\), got "kubernets"; the nearest right one is "kubernetes"$/,
    );
  });

  it('is reported with all its mistakes, in the order of the file', () => {
    expect(
      problemsIn('db: 5\ngcp: {vpc_name: A}\nkubernetes:\n  ports: 4\n  nothing_like_it: 1').map(
        (problem) => problem.split(' ')[0],
      ),
    ).toEqual(['config.yaml:1:', 'config.yaml:2:', 'config.yaml:4:', 'config.yaml:5:']);
  });

  it('keeps its secrets', () => {
    const problems = problemsIn(
      [
        'api_server: {service_account_token: the-secret-token}',
        'db: [postgres://sky:the-password@host/db]',
        'admin_policy: https//host/?token=the-token-of-a-url',
        'active_workspace: [the-secret-token]',
        'kubernetes: {ports: the-secret-token}',
      ].join('\n'),
    );
    expect(problems).toHaveLength(5);
    expect(problems.join('\n')).not.toMatch(/the-(?:secret|password|token-of)/);
    expect(problems[0]).toBe(
      'config.yaml:1: api_server.service_account_token: expected a token that starts with sky_ or null',
    );
  });
});

describe('a hostile configuration', () => {
  it('has its names and values shortened', () => {
    const [problem = ''] = problemsIn(`${'k'.repeat(1000)}: 1`);
    expect(problem.length).toBeLessThan(200);
    const [other = ''] = problemsIn(`allowed_clouds: ${'v'.repeat(5000)}`);
    expect(other.length).toBeLessThan(300);
  });

  it('gets a limited number of problems', () => {
    const tree = Object.fromEntries(
      Array.from({ length: 20_000 }, (_, index) => [`kubernetes${index}`, index]),
    );
    const problems = validateConfig(tree, () => undefined);
    expect(problems).toHaveLength(MAX_PROBLEMS + 1);
    expect(problems.at(-1)?.message).toBe('further problems are not listed');
  });

  it('is refused when it is too large to be checked', () => {
    // Each value is compared with four alternatives.
    const options = Object.fromEntries(Array.from({ length: 42_000 }, (_, index) => [`o${index}`, 'x']));
    expect(validateConfig({ slurm: { sbatch_options: options } }, () => undefined)).toEqual([
      { severity: 'error', origin: undefined, message: 'too large to be checked' },
    ]);
  });

  it('may be deep where anything is allowed', () => {
    let pod: Record<string, unknown> = {};
    for (let depth = 0; depth < 20_000; depth += 1) {
      pod = { spec: pod };
    }
    expect(validateConfig({ kubernetes: { pod_config: pod } }, () => undefined)).toEqual([]);
  });
});
