/** Many policies and many accounts that may use them, in a real cluster, and the pods of these accounts. */
import { createApiClient } from '../../src/kubernetes/cluster/api/api-client.ts';
import type { ApiClient } from '../../src/kubernetes/cluster/api/contract.ts';
import {
  accountSubject,
  binding,
  clusterRole,
  GROUP,
  namespace,
  RBAC,
  schedulingPolicy,
  useOf,
} from './cluster-objects.ts';

const RBAC_PATH = `/apis/${RBAC}/v1`;
const POLICIES_PATH = `/apis/${GROUP}/v1alpha1/schedulingpolicies`;
/** As many connections as the client opens. */
const AT_ONCE = 32;

export interface LargeClusterSize {
  readonly policies: number;
  /** With a role binding each. */
  readonly accounts: number;
  readonly namespaces: number;
}

export interface Account {
  readonly namespace: string;
  readonly name: string;
}

/** Each account may use two policies: one in turn, and the first, which is everybody's. */
export class LargeCluster {
  readonly client: ApiClient;
  readonly size: LargeClusterSize;

  constructor(kubeconfig: string, size: LargeClusterSize) {
    this.client = createApiClient({ kubeconfig, timeoutMs: 60_000 });
    this.size = size;
  }

  account(index: number): Account {
    return { namespace: `size-${index % this.size.namespaces}`, name: `account-${index}` };
  }

  async fill(): Promise<void> {
    const { policies, accounts, namespaces } = this.size;
    await this.#each(namespaces, (index) => this.#create('/api/v1/namespaces', namespace(`size-${index}`)));
    await this.#each(policies, async (index) => {
      await this.#create(POLICIES_PATH, schedulingPolicy(`policy-${index}`, specOf(index, 0)));
      const role = clusterRole(`use-policy-${index}`, useOf(`policy-${index}`));
      await this.#create(`${RBAC_PATH}/clusterroles`, role);
    });
    const all = { kind: 'Group', apiGroup: RBAC, name: 'system:serviceaccounts' };
    const ofAll = binding('use-policy-0', 'use-policy-0', [all]);
    await this.#create(`${RBAC_PATH}/clusterrolebindings`, ofAll);
    await this.#each(accounts, (index) => {
      const { namespace, name } = this.account(index);
      const subjects = subjectsOf({ namespace, name }, 0);
      return this.#create(
        `${RBAC_PATH}/namespaces/${namespace}/rolebindings`,
        binding(name, `use-policy-${index % policies}`, subjects, namespace),
      );
    });
  }

  /** Changes a policy and the subjects of a binding. */
  async change(turn: number): Promise<void> {
    const { policies, accounts } = this.size;
    const index = (turn * 7) % policies;
    const { namespace, name } = this.account((turn * 13) % accounts);
    await Promise.all([
      this.client.request({
        method: 'PATCH',
        path: `${POLICIES_PATH}/policy-${index}`,
        body: { spec: specOf(index, turn) },
      }),
      this.client.request({
        method: 'PATCH',
        path: `${RBAC_PATH}/namespaces/${namespace}/rolebindings/${name}`,
        body: {
          subjects: subjectsOf({ namespace, name }, turn),
        },
      }),
    ]);
  }

  async #create(path: string, body: object): Promise<void> {
    await this.client.request({ method: 'POST', path, body });
  }

  async #each(count: number, work: (index: number) => Promise<void>): Promise<void> {
    let next = 0;
    const worker = async () => {
      while (next < count) {
        next += 1;
        await work(next - 1);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
  }
}

/** `turn` changes what it says, and not whom it admits. */
function specOf(index: number, turn: number): object {
  return {
    allowed: {
      schedulerNames: ['default-scheduler'],
      nodeSelectors: {
        disk: ['ssd', 'hdd'],
        pool: [`pool-${index}`, `turn-${turn}`],
        'kubernetes.io/arch': [],
      },
      tolerations: [
        { keys: ['team'], operators: ['Equal'], values: [`team-${index}`], effects: ['NoSchedule'] },
      ],
    },
    default: { nodeSelector: { 'kubernetes.io/arch': 'amd64' } },
  };
}

/** As many at each turn, so that the cluster does not grow. */
function subjectsOf({ namespace, name }: Account, turn: number): object[] {
  return [name, `guest-${turn % 2}`].map((one) => accountSubject(one, namespace));
}
