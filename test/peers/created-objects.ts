/** Creates objects in a real cluster as `kubectl create` does, without a process for each. */
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Manifest } from '../etc/kubernetes/manifests.ts';

export interface Creation {
  /** What the API server says of a refusal. Empty = the object is there. */
  readonly error: string;
  readonly warnings: readonly string[];
  /** As the API server has it, or its Status. */
  readonly object: Manifest;
}

export interface CreateOptions {
  /** A kubeconfig of `Cluster.user`. Default: the administrator. */
  readonly as?: string | undefined;
  readonly isDryRun?: boolean;
  /** Gives up. Default: never. */
  readonly signal?: AbortSignal;
}

/** `folder`: of the control plane. */
export function objectCreator(folder: string) {
  const agents = new Map<string, Agent>();
  const agentOf = (user: string): Agent => {
    const [cert, key] = ['crt', 'key'].map((ending) => readFileSync(`${user}.${ending}`));
    const agent = new Agent({ keepAlive: true, ca: readFileSync(join(folder, 'ca.crt')), cert, key });
    agents.set(user, agent);
    return agent;
  };
  return {
    /** @throws an error where there is no answer */
    create(
      object: object,
      { as = join(folder, 'admin.conf'), isDryRun = false, signal }: CreateOptions = {},
    ): Promise<Creation> {
      const [, server] = /server: "([^"]*)"/.exec(readFileSync(as, 'utf8')) ?? [];
      const url = `${server}${pathOf(object)}${isDryRun ? '?dryRun=All' : ''}`;
      const user = as.replace(/\.conf$/, '');
      const agent = agents.get(user) ?? agentOf(user);
      return new Promise((resolve, reject) => {
        const headers = { 'content-type': 'application/json' };
        const sent = request(
          url,
          { method: 'POST', agent, headers, ...(signal && { signal }) },
          async (answer) => {
            try {
              const body: Manifest = JSON.parse(await text(answer));
              const warning = answer.headers.warning ?? '';
              resolve({
                error: body.kind === 'Status' ? body.message : '',
                warnings: [...warning.matchAll(/299 - ("(?:[^"\\]|\\.)*")/g)].map(([, one = '']) =>
                  one.slice(1, -1).replaceAll(/\\(.)/g, '$1'),
                ),
                object: body,
              });
            } catch (thrown) {
              reject(thrown);
            }
          },
        );
        sent.on('error', reject).end(JSON.stringify(object));
      });
    },
    close() {
      for (const agent of agents.values()) {
        agent.destroy();
      }
    },
  };
}

function pathOf({ apiVersion, kind, metadata }: Manifest): string {
  const place = metadata.namespace === undefined ? '' : `/namespaces/${metadata.namespace}`;
  const plural = `${kind.toLowerCase().replace(/y$/, 'ie').replace(/ss$/, 'sse')}s`;
  return `/api${apiVersion.includes('/') ? 's' : ''}/${apiVersion}${place}/${plural}`;
}
