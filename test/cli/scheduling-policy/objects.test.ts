/** `scheduling-policy check` on what makes pods, and on several objects at once. */

import { describe, expect, it } from 'vitest';
import { MIRROR } from '../../../src/kubernetes/admission/pod-admission.ts';
import { confFile, projectFile, temporaryFile } from '../../support/files.ts';
import { printed, refused } from '../../support/run-command.ts';
import { check as checkFile, podFile, policiesOfAll, run } from './files.ts';

const check = async (text: string, ...flags: string[]) => {
  const file = temporaryFile('objects.yaml', text);
  const result = await checkFile(file, ...flags);
  return { ...result, stdout: result.stdout.replaceAll(file, 'objects.yaml') };
};
const TEMPLATE = (spec: string) => `{metadata: {labels: {a: b}}, spec: ${spec}}`;
const object = (kind: string, spec: string, name = 'one') =>
  `kind: ${kind}\nmetadata: {name: ${name}, namespace: shop}\nspec: ${spec}\n`;

const UNSCHEDULABLE = { key: 'node.kubernetes.io/unschedulable', operator: 'Exists', effect: 'NoSchedule' };

/** Each kind around a template. */
const KINDS: readonly (readonly [kind: string, of: (template: string) => string])[] = [
  ...['Deployment', 'ReplicaSet', 'ReplicationController', 'StatefulSet', 'DaemonSet', 'Job'].map(
    (kind) => [kind, (template: string) => object(kind, `{template: ${template}}`)] as const,
  ),
  ['CronJob', (template) => object('CronJob', `{jobTemplate: {spec: {template: ${template}}}}`)],
  [
    'PodTemplate',
    (template) => `kind: PodTemplate\nmetadata: {name: one, namespace: shop}\ntemplate: ${template}\n`,
  ],
];

describe('scheduling-policy check', () => {
  it.each(KINDS)('judges the template of a %s', async (kind, of) => {
    const refused = await check(of(TEMPLATE('{nodeSelector: {disk: tape}}')));
    expect(refused.code).toBe(1);
    expect(refused.stdout).toBe(`${kind} one: rejected for system:serviceaccount:shop:default
FIELD              REASON                           POLICIES
nodeSelector disk  expected hdd or ssd, got "tape"  basic
`);
    const allowed = await check(of(TEMPLATE('{serviceAccountName: web}')));
    expect(allowed.code).toBe(0);
    expect(allowed.stdout).toMatch(
      new RegExp(`^${kind} one: allowed for system:serviceaccount:shop:web\n\n--- objects.yaml\n`),
    );
    expect(allowed.stdout).toMatch(/^\+.*disk: ssd/m);
    expect(allowed.stdout, 'what the API server adds is no matter of policies').not.toMatch(
      /^\+.*(toleration|schedulerName|not-ready)/m,
    );
  });

  it('judges a DaemonSet like its webhook, not like its pods', async () => {
    const toleration =
      '{tolerations: [{key: node.kubernetes.io/unschedulable, operator: Exists, effect: NoSchedule}]}';
    expect((await check(object('DaemonSet', `{template: ${TEMPLATE(toleration)}}`))).code).toBe(1);
  });

  it.each([
    ['the node that a scheduler has chosen', {}, {}, 0],
    [
      'the node that somebody asked for',
      { managedFields: [{ fieldsV1: { 'f:spec': { 'f:nodeName': {} } } }] },
      {},
      1,
    ],
    [
      'what the controller of a DaemonSet adds',
      { ownerReferences: [{ kind: 'DaemonSet', name: 'd', controller: true }] },
      { tolerations: [UNSCHEDULABLE] },
      0,
    ],
    ['what a DaemonSet would add', {}, { tolerations: [UNSCHEDULABLE] }, 1],
    [
      'a static pod',
      { annotations: { [MIRROR]: 'x' }, ownerReferences: [{ kind: 'Node', name: 'n1', controller: true }] },
      { priorityClassName: 'system-node-critical' },
      0,
    ],
  ])('judges a running pod without what Kubernetes has added: %s', async (_, metadata, spec, code) => {
    const pod = { kind: 'Pod', metadata: { name: 'web', ...metadata }, spec: { nodeName: 'n1', ...spec } };
    const running = { ...pod, metadata: { ...pod.metadata, resourceVersion: '7' } };
    const found = await check(JSON.stringify(running));
    expect(found.code, found.stdout).toBe(code);
    expect(found.stdout).not.toMatch(/^[-+] .*nodeName/m);
    expect((await check(JSON.stringify(pod))).code, 'a new pod').toBe(1);
  });

  it('judges every document and every item of a list', async () => {
    const text = [
      object('Pod', '{nodeSelector: {disk: hdd}}', 'a'),
      `kind: List\nitems:\n- {kind: Deployment, metadata: {name: b}, spec: {template: ${TEMPLATE('{}')}}}\n- {kind: Service, spec: {}}\n- {kind: Binding, target: {name: n1}}\n- {kind: SchedulingPolicy, spec: {}}\n`,
      `kind: PodList\nitems:\n- {metadata: {name: c}, spec: {nodeSelector: {disk: tape}}}\n- kind: List\n  items: [{kind: Pod, metadata: {generateName: d-}, spec: {}}]\n`,
    ].join('---\n');
    const { code, stdout, stderr } = await check(text);
    expect(code).toBe(1);
    expect(stdout.match(/^\w+ \S+: \w+ for .*$/gm)).toEqual([
      'Pod a: allowed for system:serviceaccount:shop:default',
      'Deployment b: allowed for system:serviceaccount:default:default',
      'Pod c: rejected for system:serviceaccount:default:default',
      'Pod d-: allowed for system:serviceaccount:default:default',
    ]);
    const [, ofLast] = stdout.split('Pod d-: ');
    expect(ofLast, 'the item of the list alone').toMatch(/^@@ -1,.*@@\n kind: Pod$/m);
    expect(stderr.replaceAll(/warning: \S+: /g, '')).toBe(`\
Service is not checked: if it has pods, they are judged when they are created
Binding is not checked: the webhook judges it for the user who creates it, who is not known here
SchedulingPolicy is not checked: "scheduling-policy validate" reads it
`);
    const json = JSON.parse((await check(text, '--format', 'json')).stdout);
    expect(json.allowed).toBe(false);
    expect(json.objects.map((one: { allowed: boolean }) => one.allowed)).toEqual([true, true, false, true]);
  });
});

describe('scheduling-policy check --config-file', () => {
  it('uses all options of [kubernetes], like the service', async () => {
    const policies = policiesOfAll({ free: '{allowed: {}}' });
    const conf = (...lines: string[]) =>
      confFile(
        ['[service]', 'port = 8642', '[kubernetes]', `scheduling_policies = ${policies}`, ...lines, ''].join(
          '\n',
        ),
      );
    const plain = podFile('{priorityClassName: everybody}');
    const code = async (...lines: string[]) =>
      (await run('check', plain, '--config-file', conf(...lines))).code;
    expect(await code()).toBe(1);
    expect(await code('audit = *')).toBe(0);
    expect((await run('check', plain, '--config-file', conf('audit = *'))).stderr).toContain(
      'warning: a scheduling policy in audit mode would reject this pod: schedulerName: ',
    );
    const scheduled = policiesOfAll({ s: '{allowed: {schedulerNames: []}}' });
    const flags = ['--policies', scheduled];
    expect((await run('check', plain, ...flags)).code).toBe(1);
    expect((await run('check', plain, ...flags, '--default-priority-class', 'everybody')).code).toBe(0);
    expect((await run('check', podFile('{}'), ...flags, '--default-priority-class', 'everybody')).code).toBe(
      0,
    );
    const configured = conf('default_priority_class = everybody');
    expect((await run('check', plain, ...flags, '--config-file', configured)).code).toBe(0);
  });

  it('needs no keys and tokens of the service, but a valid [kubernetes] section', async () => {
    const folder = projectFile('etc/kubernetes');
    const args = ['--config-file', `${folder}/policy-service.conf`];
    const policies = ['policies.yaml', 'roles.yaml'].flatMap((name) => ['--policies', `${folder}/${name}`]);
    const deployment = `${folder}/deployment.yaml`;
    expect(printed(await run('check', deployment, ...args, ...policies))).toBe(
      'Deployment blazar-enforcement: allowed for system:serviceaccount:blazar-enforcement:blazar-enforcement\n',
    );
    const wrong = confFile('[kubernetes]\nmerge_strategy = deepest\n');
    const { code, stderr } = await run('check', deployment, '--config-file', wrong, ...policies);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('merge_strategy: ') });
    expect((await run('check', deployment, '--config-file', '/nowhere', ...policies)).code).toBe(2);
  });

  it('or --policies is needed', async () => {
    expect(await run('check', podFile('{}'))).toEqual(
      refused(
        'expected --policies, --cluster, or --config-file with scheduling_policies or source = cluster in [kubernetes]',
      ),
    );
  });
});
