/** etc/kubernetes, read by kubectl itself, without a cluster. */
import { spawnSync } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, type TestContext } from 'vitest';
import { kubernetesPathOf } from '../../../src/server/own-paths.ts';
import { projectFile } from '../../support/files.ts';
import { need } from '../../support/peers.ts';
import { copyOfFolder, makeCertificate } from './certificate.ts';
import { FOLDER, type Manifest, manifests, only, parse } from './manifests.ts';

/** The first version whose kustomize knows `replacements`. */
const OLDEST_MINOR = 22;

function kubectl(...args: string[]) {
  return spawnSync('kubectl', args, { encoding: 'utf8' });
}

function needKubectl(context: TestContext): void {
  need(context, 'kubectl', 'version', '--client');
}

/** A copy of etc/kubernetes that kubectl can read: an older one, such as that of Debian 12, without `replacements`. */
function kustomizable(context: TestContext): { folder: string; isOlder: boolean } {
  needKubectl(context);
  const { clientVersion } = JSON.parse(kubectl('version', '--client', '--output', 'json').stdout);
  const isOlder = Number.parseInt(clientVersion.minor, 10) < OLDEST_MINOR;
  const folder = copyOfFolder();
  if (isOlder) {
    console.warn(`kubectl is ${clientVersion.gitVersion}: the caBundle of the webhooks is NOT checked here`);
    const file = join(folder, 'kustomization.yaml');
    writeFileSync(file, readFileSync(file, 'utf8').replace(/^replacements:[\s\S]*/m, ''));
  }
  return { folder, isOlder };
}

const FILES_FOLDER = projectFile('etc/kubernetes-files');
/** The ConfigMaps and Secrets that a pod mounts. */
const volumesOf = (pod: Manifest): string[] =>
  pod.volumes.map(({ configMap, secret }: Manifest) => configMap?.name ?? secret.secretName).sort();
const namesOf = (objects: readonly Manifest[], ...kinds: string[]): string[] =>
  objects
    .filter(({ kind }) => kinds.includes(kind))
    .map(({ metadata }) => metadata.name)
    .sort();

describe('kubectl, with etc/kubernetes', () => {
  it('builds everything, with the authority of the certificate in the webhooks', (context) => {
    need(context, 'openssl', 'version');
    const { folder, isOlder } = kustomizable(context);
    const caBundle = makeCertificate(folder).stdout.trim();
    const { status, stdout, stderr } = kubectl('kustomize', folder);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const built = parse(stdout);

    const kinds = (objects: Manifest[]) => objects.map(({ kind }) => kind).sort();
    const made = ['ConfigMap', 'Secret', 'Secret'].map((kind) => ({ kind }));
    expect(kinds(built)).toEqual(kinds([...manifests(), ...made]));
    const webhooks = ['MutatingWebhookConfiguration', 'ValidatingWebhookConfiguration'];
    if (!isOlder) {
      expect(kinds(built.slice(-2)), 'after the service').toEqual(webhooks);
      for (const kind of webhooks) {
        const token = readFileSync(join(folder, 'certificate/kubernetes-token'), 'utf8');
        for (const { name, clientConfig } of only(built, kind).webhooks) {
          expect(clientConfig.caBundle.replaceAll(/\s/g, ''), name).toBe(caBundle);
          expect(kubernetesPathOf(clientConfig.service.path)?.token, name).toBe(token);
        }
      }
    }

    const pod = only(built, 'Deployment').spec.template.spec;
    expect(volumesOf(pod)).toEqual(namesOf(built, 'ConfigMap', 'Secret'));
    expect(pod.containers[0].image).toMatch(/^registry\.example\.org\/blazar-enforcement:/);
    const bindings = built.filter(({ kind }) => kind === 'RoleBinding');
    expect(bindings.map(({ metadata }) => metadata.namespace).sort()).toEqual([
      'blazar-enforcement',
      'kube-system',
    ]);
  });

  it('builds the same with policies from files, without any right for the service', (context) => {
    need(context, 'openssl', 'version');
    const { folder, isOlder } = kustomizable(context);
    if (isOlder) {
      context.skip('kubectl is too old for `patches`: etc/kubernetes-files is NOT checked here');
    }
    makeCertificate(folder);
    const files = `${folder}-files`;
    cpSync(FILES_FOLDER, files, { recursive: true });
    const sources = ['policies.yaml', 'roles.yaml'];
    for (const name of sources) {
      cpSync(join(FOLDER, name), join(files, name));
    }
    const { status, stdout, stderr } = kubectl('kustomize', files);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const built = parse(stdout);

    const ofService = built.filter(({ metadata }) => metadata.name === 'blazar-enforcement');
    expect(ofService.filter(({ kind }) => /Role|Binding/.test(kind))).toEqual([]);
    const pod = only(built, 'Deployment').spec.template.spec;
    expect(pod.automountServiceAccountToken).toBe(false);
    expect(volumesOf(pod)).toEqual(namesOf(built, 'ConfigMap', 'Secret'));
    const dataOf = (start: string) =>
      built.find(({ metadata }) => metadata.name.startsWith(`blazar-enforcement-${start}-`)).data;
    expect(dataOf('policies')).toEqual(
      Object.fromEntries(sources.map((name) => [name, readFileSync(join(FOLDER, name), 'utf8')])),
    );

    // The same but for the source of policies, and what needs rights.
    const text = dataOf('configuration')['policy-service.conf'];
    const optionsOf = (conf: string) => conf.split('\n').filter((line) => /^[a-z[]/.test(line));
    const mount = pod.containers[0].volumeMounts.find(({ name }: Manifest) => name === 'policies').mountPath;
    const live = optionsOf(readFileSync(join(FOLDER, 'policy-service.conf'), 'utf8'));
    expect(optionsOf(text)).toEqual(
      live
        .filter((line) => !line.startsWith('installed_webhooks = '))
        .map((line) => (line === 'source = cluster' ? `scheduling_policies = ${mount}` : line)),
    );
  });

  it.for([
    ['deployment.yaml', ['set', 'env'], 'ANY=thing'],
    ['service.yaml', ['set', 'selector'], 'app.kubernetes.io/name=blazar-enforcement'],
  ] as const)('knows every field of %s', ([name, command, change], context) => {
    needKubectl(context);
    const local = ['--local', '--filename', join(FOLDER, name), '--output', 'json'];
    const { status, stdout, stderr } = kubectl(...command, ...local, change);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    // kubectl drops fields that it does not know.
    expect(JSON.parse(stdout)).toMatchObject(manifests(name)[0]);
  });
});
