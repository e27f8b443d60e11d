/** Rules with `on: pod` at the webhook's authenticator: the same rules for new pods, and for everything that makes another pod of one. */
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { serviceLog } from '../../support/decision-logs.ts';
import { temporaryFolder } from '../../support/filter-folder.ts';
import {
  admissionReview,
  asking,
  creating,
  policiesForAll,
  VALIDATION,
  type WireReview,
} from '../../support/kubernetes-service.ts';
import { runServiceOf } from '../../support/running-service.ts';

const RULES = `rules:
- name: cores
  on: pod
  exempt: {users: ['system:serviceaccount:kube-system:builder']}
  allow: 'requested(pod, "cpu") <= 4.0'
  message: {expression: '"At most 4 cores in " + pod.namespace + "."'}
- {name: images, on: pod, allow: 'pod.containers.all(one, !one.image.startsWith("evil.example.org/"))', message: Not from there.}
`;
const COST = 'At most 4 cores in shop.';

interface Authenticator {
  readonly rules?: string;
  readonly policies?: string;
  readonly watch?: boolean;
  readonly kubernetes?: object;
}

async function authenticator({ rules = RULES, policies, watch = false, kubernetes }: Authenticator = {}) {
  const folder = temporaryFolder();
  const rules_path = join(folder, 'rules.yaml');
  writeFileSync(rules_path, rules);
  const policyFile = join(temporaryFolder(), 'policies.yaml');
  writeFileSync(policyFile, policies ?? '');
  const { decision_log, of } = serviceLog();
  const values = {
    service: { decision_log },
    kubernetes: { rules_path, ...(policies && { scheduling_policies: [policyFile] }), ...kubernetes },
  };
  const running = await runServiceOf(values, { watch, pollMs: 20 });
  return { ...running, folder, rules_path, ask: asking(running), recorded: () => of(running) };
}

const container = (cpu: string, image = 'example.org/main') => ({
  name: 'main',
  image,
  resources: { requests: { cpu } },
});
const pod = (cpu: string, image?: string) => creating({ containers: [container(cpu, image)] });

/** As an API server of 1.33 sends it, from one pod to another. `change`: of the new one. */
function changing(subResource: string | undefined, change: (pod: WireReview['request']['object']) => void) {
  const review = admissionReview('update-adding-a-toleration');
  const { request } = review;
  const object = structuredClone(request.oldObject ?? request.object);
  change(object);
  const part = subResource === undefined ? {} : { subResource, requestSubResource: subResource };
  return { ...review, request: { ...request, ...part, object } };
}

const resized = (cpu: string) =>
  changing('resize', ({ spec }) => {
    const [first] = spec.containers as object[];
    spec.containers = [{ ...first, resources: { requests: { cpu } } }];
  });
const debugged = (image: string) =>
  changing('ephemeralcontainers', ({ spec }) => {
    spec.ephemeralContainers = [{ name: 'debugger', image, targetContainerName: 'batch' }];
  });

describe('rules at the webhook', () => {
  it('allow a pod, and refuse another with their messages', async () => {
    const { ask } = await authenticator();
    expect(await ask(pod('4'))).toMatchObject({ status: 200, allowed: true, message: undefined });
    const refused = await ask(pod('4001m', 'evil.example.org/x'));
    expect(refused).toMatchObject({ allowed: false, message: `${COST} Not from there.` });
    expect(await ask(pod('5'), VALIDATION)).toMatchObject({ allowed: false, message: COST });
  });

  it('judge the pod that a resize, an ephemeral container or an update would make', async () => {
    const { ask } = await authenticator();
    for (const [review, message] of [
      [resized('4'), undefined],
      [resized('4001m'), COST],
      [debugged('example.org/tools'), undefined],
      [debugged('evil.example.org/tools'), 'Not from there.'],
      [
        changing(undefined, ({ spec }) => {
          spec.containers = [container('1', 'evil.example.org/x')];
        }),
        'Not from there.',
      ],
      // It runs until its grace period is over.
      [
        changing('resize', ({ metadata, spec }) => {
          metadata.deletionTimestamp = '2027-11-20T08:15:30Z';
          spec.containers = [container('9')];
        }),
        COST,
      ],
    ] as const) {
      expect(await ask(review, VALIDATION)).toMatchObject({ allowed: message === undefined, message });
    }
  });

  it('judge labels, annotations, tolerations and deadlines that change, and not what controllers must be able to take', async () => {
    const { ask } = await authenticator({
      rules: 'rules:\n- {name: none, on: pod, allow: "false", message: "No."}\n',
    });
    const allows = async (part: 'metadata' | 'spec', changes: object) => {
      const changed = changing(undefined, (pod) => Object.assign(pod[part], changes));
      return (await ask(changed, VALIDATION)).allowed;
    };
    expect(await allows('metadata', { labels: { team: 'other' } })).toBe(false);
    expect(await allows('metadata', { annotations: { a: 'b' } })).toBe(false);
    expect(await allows('spec', { tolerations: [] })).toBe(false);
    expect(await allows('spec', { activeDeadlineSeconds: 9 })).toBe(false);
    expect(await allows('metadata', { finalizers: [] })).toBe(true);
    expect(await allows('spec', {})).toBe(true);
  });

  it('that break refuse with a text that says nothing of it, and the cause is logged', async () => {
    const { ask, logger } = await authenticator({
      rules: 'rules:\n- {name: nodes, on: pod, allow: pod.spec.secretMember == "x", message: "No."}\n',
    });
    expect(await ask(resized('1'), VALIDATION)).toMatchObject({
      allowed: false,
      message: expect.stringMatching(
        /^this is a fault of the policy service; its log has the cause under req-/,
      ),
    });
    const error = expect.stringMatching(/rules\.yaml:2: rule nodes: .*pod\.spec\.secretMember is missing/);
    expect(logger.lines).toContainEqual(
      expect.objectContaining({ message: 'review failed', fields: expect.objectContaining({ error }) }),
    );
  });

  it('are named in the decision and counted', async () => {
    const { ask, recorded } = await authenticator({
      rules: RULES.replace('{name: images', '{name: images, mode: audit'),
    });
    await ask(pod('5', 'evil.example.org/x'));
    const { records, metrics } = await recorded();
    const rules = [
      { rule: 'cores', outcome: 'rejected', audit: false },
      { rule: 'images', outcome: 'rejected', audit: true },
    ];
    expect(records).toMatchObject([{ outcome: 'rejected', message: COST, filters: [{ rules }] }]);
    for (const [rule, mode] of [
      ['cores', 'enforce'],
      ['images', 'audit'],
    ]) {
      const labels = `operation="kubernetes.admission",rule="${rule}",mode="${mode}",outcome="rejected"`;
      expect(metrics).toContain(`blazar_enforcement_rule_refusals_total{${labels}} 1\n`);
    }
  });
});

describe('the ephemeral containers of a pod without the pod, as Kubernetes sent them until 1.21', () => {
  const alone = () => {
    const { request, ...review } = debugged('example.org/tools');
    const object = {
      kind: 'EphemeralContainers',
      apiVersion: 'v1',
      metadata: { name: 'batch-0', namespace: 'shop' },
      ephemeralContainers: [{ name: 'debugger', image: 'example.org/tools' }],
    };
    return {
      ...review,
      request: { ...request, object, oldObject: { ...object, ephemeralContainers: null } },
    };
  };

  it('are refused where rules would judge the pod', async () => {
    const { ask } = await authenticator();
    expect(await ask(alone(), VALIDATION)).toMatchObject({
      status: 200,
      allowed: false,
      message:
        'the pod cannot be judged: request.object: expected the pod: Kubernetes 1.22 or newer sends it with its ephemeral containers',
    });
  });

  it('only cause a warning where all rules are in audit mode, and pass where there are none', async () => {
    const policies = policiesForAll({ disks: { allowed: { nodeSelectors: { disk: ['ssd'] } } } });
    const audit = 'rules:\n- {name: a, on: pod, mode: audit, allow: "false", message: "No."}\n';
    const tried = await (await authenticator({ rules: audit, policies })).ask(alone(), VALIDATION);
    expect(tried).toMatchObject({ allowed: true, warnings: [expect.stringContaining('could not be tried')] });
    const none = await authenticator({ policies, kubernetes: { rules_path: undefined } });
    expect(await none.ask(alone(), VALIDATION)).toMatchObject({ allowed: true, warnings: [] });
  });
});

describe('a file of rules that changes', () => {
  it('is read again, and the rules before stay in force where it cannot be', async () => {
    const { ask, service, request, rules_path, logger } = await authenticator();
    const readiness = async () => (await request('/readyz')).text;
    const broken: [string, string | Buffer][] = [
      ['cut off', RULES.slice(0, RULES.indexOf('message: {exp') + 20)],
      ['emptied', ''],
      ['not text', Buffer.from([0xff, 0xfe, 0x00])],
    ];
    for (const [what, text] of broken) {
      writeFileSync(rules_path, text);
      expect(await service.reload(), what).toBe(false);
      expect(await ask(pod('5')), what).toMatchObject({ allowed: false, message: COST });
      expect(await readiness(), what).toContain('rules.yaml');
    }
    expect(JSON.stringify(logger.lines.filter(({ level }) => level === 'error'))).toContain('rules.yaml');
    writeFileSync(rules_path, RULES.replace('<= 4.0', '<= 6.0'));
    expect(await service.reload()).toBe(true);
    expect(await ask(pod('5'))).toMatchObject({ allowed: true });
    expect(await readiness()).not.toContain('rules.yaml');
  });

  it('is seen by who watches it', async () => {
    const { ask, folder, rules_path } = await authenticator({ watch: true });
    expect(await ask(pod('5'))).toMatchObject({ allowed: false });
    const next = join(folder, 'next');
    writeFileSync(next, RULES.replace('<= 4.0', '<= 6.0'));
    renameSync(next, rules_path);
    await expect.poll(() => ask(pod('5'))).toMatchObject({ allowed: true });
  });
});
