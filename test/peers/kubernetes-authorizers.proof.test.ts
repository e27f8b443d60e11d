/** Authorizers other than RBAC: ABAC, which knows no names of policies, and a webhook, which gives single ones. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { serviceAccount } from '../../src/kubernetes/policies/access.ts';
import { type AskedCluster, askCluster } from './asked-cluster.ts';
import { GROUP } from './cluster-objects.ts';
import { clusterOfFile } from './cluster-of-file.ts';

const BY_ABAC = serviceAccount('team', 'by-abac');
const BY_WEBHOOK = serviceAccount('team', 'by-webhook');
const GIVEN_BY_WEBHOOK = 'policy-7';

const MANY = Array.from({ length: 40 }, (_, index) => `policy-${index}`);
const FEW = MANY.slice(0, 32);

const folder = mkdtempSync(join(tmpdir(), 'blazar-enforcement-authorizers-'));
/** It listens before the API server starts, which asks it what RBAC does not allow. */
const webhook = await startWebhook();
const { cluster, closing } = clusterOfFile({ flags: authorizerFlags() });
closing.unshift(
  () => rmSync(folder, { recursive: true }),
  () => webhook.close(),
);

async function startWebhook(): Promise<Server> {
  const server = createServer(async (request, response) => {
    const { spec, ...review } = (await json(request)) as {
      spec: { user?: string; resourceAttributes?: { name?: string; resource?: string } };
    };
    const { user, resourceAttributes: { name, resource } = {} } = spec;
    const allowed =
      user === BY_WEBHOOK.user && resource === 'schedulingpolicies' && name === GIVEN_BY_WEBHOOK;
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify({ ...review, spec, status: { allowed } }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

/** The API server appends the modes to Node,RBAC. */
function authorizerFlags(): string {
  const address = webhook.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  const policies = join(folder, 'abac.jsonl');
  const kubeconfig = join(folder, 'webhook.conf');
  const spec = { user: BY_ABAC.user, namespace: '*', resource: 'schedulingpolicies', apiGroup: GROUP };
  writeFileSync(
    policies,
    JSON.stringify({ apiVersion: 'abac.authorization.kubernetes.io/v1beta1', kind: 'Policy', spec }),
  );
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'a', cluster: { server: `http://127.0.0.1:${port}/` } }],
      users: [{ name: 'a', user: {} }],
      contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
      'current-context': 'a',
    }),
  );
  return [
    '--authorization-mode=ABAC,Webhook',
    `--authorization-policy-file=${policies}`,
    `--authorization-webhook-config-file=${kubeconfig}`,
    '--authorization-webhook-version=v1',
  ].join(' ');
}

describe.skipIf(cluster === undefined)('with RBAC, ABAC and a webhook, a real API server', () => {
  let asked: AskedCluster;

  beforeAll(async () => {
    if (cluster === undefined) {
      return;
    }
    asked = askCluster(cluster);
    closing.push(asked.close);
    await vi.waitFor(() => expect(asked.hint.problem).toBeUndefined(), { timeout: 120_000 });
  });

  it('lets an account use all policies that ABAC gives it, in every mode', async () => {
    expect(await asked.truth(BY_ABAC, MANY)).toEqual(MANY);
    for (const options of [{ hint: asked.hint }, {}, { rights: 'every' as const }]) {
      expect(await asked.permissions(options).usable(BY_ABAC, MANY)).toEqual(MANY);
    }
  });

  it('lets an account use the one that the webhook gives it: of up to 32 policies, and with rights = every', async () => {
    const { hint } = asked;
    expect(await asked.truth(BY_WEBHOOK, MANY)).toEqual([GIVEN_BY_WEBHOOK]);
    expect(await asked.permissions({ hint }).usable(BY_WEBHOOK, FEW)).toEqual([GIVEN_BY_WEBHOOK]);
    expect(await asked.permissions({ hint, rights: 'every' }).usable(BY_WEBHOOK, MANY)).toEqual([
      GIVEN_BY_WEBHOOK,
    ]);
    expect(await asked.permissions().usable(BY_WEBHOOK, MANY)).toEqual([GIVEN_BY_WEBHOOK]);
  });

  it('is not asked about that one among more policies with rights = auto: no role names it', async () => {
    expect(await asked.permissions({ hint: asked.hint }).usable(BY_WEBHOOK, MANY)).toEqual([]);
  });
});
