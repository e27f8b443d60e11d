import { rmSync, writeFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { REJECTED, rejectedWith, UNCHANGED, UNCHECKED } from '../support/decisions.ts';
import { temporaryFile } from '../support/files.ts';
import { loadLibraries, startService } from '../support/services.ts';
import { type Asked, askTwice, chainOf, LEE } from './helpers.ts';

beforeAll(loadLibraries, 60_000);

const PREFIX = 'dynamic_kubernetes_contexts_update';

const KUBECONFIG = `apiVersion: v1
kind: Config
current-context: cpu
clusters:
- {name: east, cluster: {server: "https://127.0.0.1:6443", certificate-authority-data: c2VjcmV0}}
contexts:
- {name: cpu, context: {cluster: east, user: sky}}
- {name: gpu-east, context: {cluster: east, user: sky}}
- {name: gpu-west, context: {cluster: east, user: sky}}
users:
- {name: sky, user: {token: hunter2}}
`;

const REGISTRY = `users:
  lee: [gpu-west, gone, gpu-east, gpu-west]
  e5f6: [gpu-east]
  barred: []
workspaces:
  research: [gpu-east]
  default: [gpu-west]
default: [cpu]
`;

/** The policy with a registry and a kubeconfig in files, which the test may change. */
async function updating(registry = REGISTRY, kubeconfig = KUBECONFIG) {
  const files = {
    registry: temporaryFile('contexts.yaml', registry),
    kubeconfig: temporaryFile('kubeconfig', kubeconfig),
  };
  return {
    files,
    ...(await chainOf(
      ['DynamicKubernetesContextsUpdatePolicy'],
      optionsOf(files.registry, files.kubeconfig),
    )),
  };
}

function optionsOf(registry: string, kubeconfig: string) {
  return { [`${PREFIX}_registry`]: registry, [`${PREFIX}_kubeconfig`]: kubeconfig, [`${PREFIX}_timeout`]: 1 };
}

async function allowedFor(asked: Asked, registry = REGISTRY) {
  const { ask } = await updating(registry);
  const { skypilotConfig } = await askTwice(ask, asked);
  return skypilotConfig.getNested(['kubernetes', 'allowed_contexts']);
}

const user = (name: string, id = '0000') => ({ ...LEE, name, id });

describe('DynamicKubernetesContextsUpdatePolicy', () => {
  it('replaces the allowed contexts, and keeps everything else', async () => {
    const { ask } = await updating();
    const { skypilotConfig } = await askTwice(ask, {
      config:
        'kubernetes:\n  allowed_contexts: [cpu, gpu-west]\n  provision_timeout: 600\naws: {vpc_name: x}\n',
    });
    expect(skypilotConfig.toDict()).toEqual({
      kubernetes: { allowed_contexts: ['gpu-west', 'gpu-east'], provision_timeout: 600 },
      aws: { vpc_name: 'x' },
    });
  });

  it('refuses requests while the registry is cut off: others than those left would have more', async () => {
    const { ask, files, logger } = await updating(
      'default: [cpu, gpu-east]\nusers:\n  e5f6: []\n  lee: [cpu]\n',
    );
    expect((await ask({ user: user('lee') })).allowed).toBe(true);
    writeFileSync(files.registry, 'default: [cpu, gpu-east]\nusers:\n  e5f6: []');
    for (const _ of [1, 2]) {
      expect(await ask({ user: user('lee') })).toMatchObject(UNCHECKED);
    }
    expect(JSON.stringify(logger.lines)).toContain('no longer ends with a line break');
    writeFileSync(files.registry, REGISTRY);
    expect((await ask({ user: user('lee') })).allowed).toBe(true);
  });

  it('limits the lists of workspaces too, which SkyPilot takes instead of the general one', async () => {
    const { ask } = await updating();
    const config = (workspace: string) => `active_workspace: ${workspace}
workspaces:
  research: {kubernetes: {allowed_contexts: [cpu, gpu-east]}, private: true}
  plain: {kubernetes: {disabled: false}}
  open: {kubernetes: {allowed_contexts: all}}
  other: {kubernetes: {allowed_contexts: [cpu]}}
`;
    const { skypilotConfig } = await askTwice(ask, { config: config('research') });
    expect(skypilotConfig.getNested(['workspaces'])).toEqual({
      research: { kubernetes: { allowed_contexts: ['gpu-east'] }, private: true },
      plain: { kubernetes: { disabled: false } },
      open: { kubernetes: { allowed_contexts: ['gpu-west', 'gpu-east'] } },
      other: { kubernetes: { allowed_contexts: [] } },
    });
    expect(await ask({ config: config('other') })).toMatchObject(
      rejectedWith('No Kubernetes context is available to you: ask the operator for access to one.'),
    );
    const unnamed = 'workspaces: {default: {kubernetes: {allowed_contexts: [cpu]}}}\n';
    expect(await ask({ config: unnamed })).toMatchObject(REJECTED);
    expect((await ask({ config: unnamed, name: 'validate' })).allowed).toBe(true);
  });

  it.each([
    ['the user by name', { user: user('lee') }, ['gpu-west', 'gpu-east']],
    [
      'the default workspace for a service account, whoever it is named after',
      { user: user('lee', 'sa-1f') },
      ['gpu-west'],
    ],
    ['the user by id', { user: user('someone', 'e5f6') }, ['gpu-east']],
    ['the workspace', { user: user('kim'), config: 'active_workspace: research' }, ['gpu-east']],
    ['the default workspace', { user: user('kim') }, ['gpu-west']],
    ['everyone', { user: user('kim'), config: 'active_workspace: other' }, ['cpu']],
    [
      'everyone, whatever objects inherit',
      { user: user('constructor'), config: 'active_workspace: toString' },
      ['cpu'],
    ],
  ])('goes by %s', async (_by, asked, expected) => {
    expect(await allowedFor(asked)).toEqual(expected);
  });

  it('reads a list for everyone, and JSON', async () => {
    expect(await allowedFor({ user: user('kim') }, '[gpu-east, cpu]')).toEqual(['gpu-east', 'cpu']);
    expect(await allowedFor({ user: user('kim') }, '{"users": {"kim": ["cpu"]}}')).toEqual(['cpu']);
    expect(await allowedFor({ atClientSide: true }, '- cpu\n')).toEqual(['cpu']);
  });

  it.each([
    ['has none in the registry', REGISTRY, user('barred')],
    ['is not in the registry', 'users: {lee: [cpu]}', user('kim')],
  ])('rejects a user who %s', async (_who, registry, who) => {
    const { ask } = await updating(registry);
    expect(await ask({ user: who })).toMatchObject(
      rejectedWith('No Kubernetes context is available to you: ask the operator for access to one.'),
    );
  });

  it('keeps a request of the client, whose user is not known yet', async () => {
    const { ask } = await updating();
    expect(await ask({ atClientSide: true })).toMatchObject(UNCHANGED);
  });

  it('keeps an early request without a workspace, because the launch may have one', async () => {
    const { ask } = await updating('{workspaces: {research: [cpu]}}');
    expect(await ask({ name: 'validate' })).toMatchObject(UNCHANGED);
    expect(await ask({ name: 'validate', config: 'active_workspace: other' })).toMatchObject(REJECTED);
    expect(await ask({ name: 'launch' })).toMatchObject(REJECTED);
  });

  it('reads both files for every request, and writes neither', async () => {
    const { ask, files } = await updating();
    await ask();
    writeFileSync(files.registry, 'default: [cpu]\n');
    const second = await ask();
    expect(second.skypilotConfig.getNested(['kubernetes', 'allowed_contexts'])).toEqual(['cpu']);
    writeFileSync(files.kubeconfig, 'contexts: []');
    expect(await ask()).toMatchObject(REJECTED);
  });
});

describe('DynamicKubernetesContextsUpdatePolicy fails, and lets nothing through,', () => {
  it('when the server sends no user', async () => {
    const { ask } = await updating();
    expect(await ask({ user: null })).toMatchObject(UNCHECKED);
  });

  it.each(['registry', 'kubeconfig'] as const)('when the %s is not there', async (file) => {
    const { ask, files, logger } = await updating();
    rmSync(files[file]);
    expect(await ask()).toMatchObject(UNCHECKED);
    expect(JSON.stringify(logger.lines)).toContain('ENOENT');
  });

  it.each([
    ['', 'empty'],
    ['a: [', 'no YAML'],
    ['users: {lee: [1]}', 'with a number'],
    ['users: {lee: [cpu], lee: [gpu-east]}', 'with one user twice'],
  ])('when the registry is %j: %s', async (registry) => {
    const { ask } = await updating(registry);
    expect(await ask({ user: user('lee') })).toMatchObject(UNCHECKED);
  });

  it.each(['', 'contexts: [', `token: hunter2\ntoken: hunter2\n: [`])(
    'when the kubeconfig is %j, and shows nothing of it',
    async (kubeconfig) => {
      const { ask, logger } = await updating(REGISTRY, kubeconfig);
      expect(await ask()).toMatchObject(UNCHECKED);
      expect(JSON.stringify(logger.lines)).not.toContain('hunter2');
    },
  );

  it('when one of them is too large, or a YAML bomb', async () => {
    const bomb = `a: &a [x,x,x,x,x,x,x,x,x]\n${'bcdefghi'
      .split('')
      .map((name, index) => {
        const before = 'abcdefgh'[index];
        return `${name}: &${name} [${Array(9).fill(`*${before}`).join()}]`;
      })
      .join('\n')}\n`;
    for (const registry of [`# ${'x'.repeat(2 ** 22)}\n[cpu]`, bomb]) {
      const { ask } = await updating(registry);
      expect(await ask()).toMatchObject(UNCHECKED);
    }
  });
});

describe('a registry behind a URL', () => {
  const behind = (url: string, more: Readonly<Record<string, unknown>> = {}) =>
    chainOf(['DynamicKubernetesContextsUpdatePolicy'], {
      ...optionsOf(url, temporaryFile('kubeconfig', KUBECONFIG)),
      ...more,
    });

  it('is read for every request, with a token where there is one', async () => {
    const service = await startService((response) => response.end('{"users":{"lee":["gpu-east"]}}'));
    const { ask } = await behind(service.url, { [`${PREFIX}_registry_token`]: 's3cret' });
    const { skypilotConfig } = await askTwice(ask);
    expect(skypilotConfig.getNested(['kubernetes', 'allowed_contexts'])).toEqual(['gpu-east']);
    expect(service.requests).toHaveLength(2);
    expect(service.requests[0]?.headers.authorization).toBe('Bearer s3cret');
  });

  it.each([
    ['says no', (response) => response.writeHead(403).end('[cpu]')],
    ['sends somewhere else', (response) => response.writeHead(302, { location: '/' }).end('[cpu]')],
    ['answers with too much', (response) => response.end(`[cpu] # ${'x'.repeat(2 ** 22)}`)],
    ['never answers', () => {}],
  ] as [string, Parameters<typeof startService>[0]][])(
    'makes the policy fail when it %s',
    async (_what, answer) => {
      const service = await startService(answer);
      const { ask, logger } = await behind(service.url, { [`${PREFIX}_registry_token`]: 's3cret' });
      expect(await ask()).toMatchObject(UNCHECKED);
      expect(JSON.stringify(logger.lines)).not.toContain('s3cret');
    },
  );
});
