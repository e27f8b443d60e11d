/** What a service account of a real cluster calls the API server with. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { vi } from 'vitest';
import { type Manifest, parse } from '../etc/kubernetes/manifests.ts';
import type { Cluster } from './kubernetes.ts';

const SETTLED = { timeout: 120_000, interval: 200 };

/** A kubeconfig with the token that the cluster has given to the account, in its namespace. Returns its path. */
export async function kubeconfigOfAccount(
  { folder, get }: Cluster,
  namespace: string,
  name: string,
): Promise<string> {
  const account = await vi.waitUntil(async () => {
    const read = (await get('-n', namespace, 'get', 'serviceaccount', name)) as Manifest;
    return read.secrets?.length > 0 && read;
  }, SETTLED);
  const secret = (await get('-n', namespace, 'get', 'secret', account.secrets[0].name)) as Manifest;
  const [admin] = parse(readFileSync(join(folder, 'admin.conf'), 'utf8'));
  admin.users = [{ name: 'user', user: { token: Buffer.from(secret.data.token, 'base64').toString() } }];
  admin.contexts[0].context.namespace = namespace;
  const file = join(folder, 'account.conf');
  writeFileSync(file, JSON.stringify(admin), { mode: 0o600 });
  return file;
}
