/** Stories of the proposal in a real cluster, by kubectl: apply, bind, create pods, patch, unbind. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Manifest } from '../etc/kubernetes/manifests.ts';
import { parse } from '../etc/kubernetes/manifests.ts';
import { projectFile } from '../support/files.ts';
import {
  namespace as aNamespace,
  priorityClass,
  schedulingPolicy,
  serviceAccount,
} from './cluster-objects.ts';
import { granted, pod, policedClusterOfFile } from './policed-cluster.ts';
import { REFUSED, STORIES } from './proposal-stories.ts';

const FOLDER = projectFile('test/fixtures/kubernetes/proposal');
const FILES = readdirSync(FOLDER).sort();
/** Until a change is in force: of a busy machine. */
const IN_FORCE = { timeout: 120_000, interval: 100 };

const { started, police, here } = policedClusterOfFile();

/** The policies of an example, in the group that a cluster can have. */
function policiesOf(example: string): Manifest[] {
  const file = FILES.find((name) => name.startsWith(example)) ?? '';
  return parse(readFileSync(join(FOLDER, file), 'utf8')).map((document: Manifest, index) =>
    schedulingPolicy(`example-${example}-${document.metadata?.name ?? index}`, document.spec),
  );
}

const kubectl = (...args: string[]) => here().cluster.kubectl(args);
const applied = async (object: object) =>
  (await here().cluster.kubectl(['apply', '--validate=false', '-f', '-'], { stdin: JSON.stringify(object) }))
    .stderr;

let number = 0;
/** A namespace of its own, and an account in it that may not be used by anything else. */
async function place(): Promise<string> {
  number += 1;
  const namespace = `story-${number}`;
  await here().cluster.apply([aNamespace(namespace)]);
  await expect.poll(() => here().create(serviceAccount('worker', namespace)), IN_FORCE).toBe('');
  return namespace;
}

let pods = 0;
/** What the cluster says to a new pod of that account. */
async function tell(namespace: string, spec: object): Promise<{ said: string; pod: Manifest }> {
  pods += 1;
  const name = `pod-${pods}`;
  const asked = pod(namespace, name, { serviceAccountName: 'worker', ...spec });
  const { error, object } = await here().cluster.create(asked);
  return { said: error, pod: object };
}

describe.skipIf(started === undefined)('in a real cluster', () => {
  beforeAll(async () => {
    if (started === undefined) {
      return;
    }
    await police(started);
    const classes = { 'high-priority': 1000, bronze: 1, silver: 2, gold: 3 };
    await started.apply(Object.entries(classes).map(([name, value]) => priorityClass(name, value)));
  });

  it.each(STORIES)(
    'the example $example means what the proposal says',
    { timeout: 1_200_000 },
    async (story) => {
      const { example, strategy = 'deep', pods: told } = story;
      const policies = policiesOf(example);
      await here().configure({ merge_strategy: strategy });
      const namespace = await place();
      for (const policy of policies) {
        expect(await applied(policy)).toBe('');
      }
      await here().cluster.apply(
        granted(namespace, 'worker', ...policies.map(({ metadata }) => metadata.name)),
      );
      for (const one of told) {
        if ('refused' in one) {
          // A change is in force within ten seconds; until then a pod may be judged by what was before.
          await expect
            .poll(async () => (await tell(namespace, one.spec)).said, IN_FORCE)
            .toMatch(one.refused);
        } else {
          const becoming = async () => {
            const { said, pod: created } = await tell(namespace, one.spec);
            return said === '' ? contained(created.spec, one.becomes) : said;
          };
          await expect.poll(becoming, IN_FORCE).toEqual(one.becomes);
        }
      }
    },
  );

  it.each(Object.entries(REFUSED))('the example %s is refused when it is applied', async (example, words) => {
    const [policy] = policiesOf(example);
    expect(await applied(policy)).toMatch(words);
    expect((await kubectl('get', 'schedpol', policy.metadata.name)).status).toBe(1);
  });

  it('a patch, an unbinding and a deletion are in force', async () => {
    await here().configure({});
    const namespace = await place();
    const ssd = { nodeSelector: { disk: 'ssd' } };
    const said = (spec: object) => expect.poll(async () => (await tell(namespace, spec)).said, IN_FORCE);
    await said(ssd).toMatch(/nodeSelector disk: /);
    await here().cluster.apply([
      schedulingPolicy('disks', { allowed: { nodeSelectors: { disk: ['hdd'] } } }),
    ]);
    await here().cluster.apply(granted(namespace, 'worker', 'disks'));
    await said({ nodeSelector: { disk: 'hdd' } }).toBe('');
    expect((await tell(namespace, ssd)).said).toMatch(/expected hdd, got "ssd" \(scheduling policy disks\)/);
    const patch = JSON.stringify({ spec: { allowed: { nodeSelectors: { disk: ['hdd', 'ssd'] } } } });
    expect((await kubectl('patch', 'schedpol', 'disks', '--type=merge', '-p', patch)).status).toBe(0);
    await said(ssd).toBe('');
    expect((await kubectl('-n', namespace, 'delete', 'rolebinding', 'use-disks')).status).toBe(0);
    await said(ssd).toMatch(/nodeSelector disk: /);
    await here().cluster.apply(granted(namespace, 'worker', 'disks'));
    await said(ssd).toBe('');
    expect((await kubectl('delete', 'schedpol', 'disks')).status).toBe(0);
    await said(ssd).toMatch(/nodeSelector disk: /);
  });
});

/** Of a pod, the parts that are expected of it. */
function contained(spec: Manifest, expected: object): object {
  return Object.fromEntries(
    Object.keys(expected).map((field) => [
      field,
      // Without those that the API server adds to every pod.
      field === 'tolerations'
        ? spec.tolerations.filter((one: Manifest) => one.tolerationSeconds === undefined)
        : spec[field],
    ]),
  );
}
