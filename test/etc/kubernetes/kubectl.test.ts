/** etc/kubernetes, read by kubectl itself, without a cluster. */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, type TestContext } from 'vitest';
import { kubernetesPathOf } from '../../../src/server/own-paths.ts';
import { copyOfFolder, makeCertificate, need } from './certificate.ts';
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

describe('kubectl, with etc/kubernetes', () => {
  it('builds everything, with the authority of the certificate in the webhooks', (context) => {
    need(context, 'openssl', 'version');
    const { folder, isOlder } = kustomizable(context);
    const caBundle = makeCertificate(folder).stdout.trim();
    const { status, stdout, stderr } = kubectl('kustomize', folder);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const built = parse(stdout);

    const kinds = (objects: Manifest[]) => objects.map(({ kind }) => kind).sort();
    const made = ['ConfigMap', 'ConfigMap', 'Secret', 'Secret'].map((kind) => ({ kind }));
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
    const names = pod.volumes.map(({ configMap, secret }: Manifest) => configMap?.name ?? secret.secretName);
    const there = built.filter(({ kind }) => kind === 'ConfigMap' || kind === 'Secret');
    expect(names.sort()).toEqual(there.map(({ metadata }) => metadata.name).sort());
    const policies = there.find(({ metadata }) => metadata.name.startsWith('blazar-enforcement-policies-'));
    expect(policies.data).toEqual({
      'policies.yaml': readFileSync(join(FOLDER, 'policies.yaml'), 'utf8'),
      'roles.yaml': readFileSync(join(FOLDER, 'roles.yaml'), 'utf8'),
    });
    expect(pod.containers[0].image).toMatch(/^registry\.example\.org\/blazar-enforcement:/);
    expect(only(built, 'RoleBinding').metadata.namespace).toBe('kube-system');
  });

  it('builds nothing without a certificate', (context) => {
    const { status, stdout, stderr } = kubectl('kustomize', kustomizable(context).folder);
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toContain('certificate/');
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
