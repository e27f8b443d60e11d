/** What the tests of `scheduling-policy` commands that ask a cluster share: a small API server with policies and pods. */
import { type ApiServerDouble, startApiServerDouble } from '../../support/api-server-double.ts';
import { runProgramInProcess } from '../../support/command-in-process.ts';

const GROUP = 'scheduling.blazar-enforcement';
const POLICIES = `/apis/${GROUP}/v1alpha1/schedulingpolicies`;
export const RBAC = '/apis/rbac.authorization.k8s.io/v1';

/** The rule of a role that grants the use of these policies. */
export function useOf(...resourceNames: string[]) {
  return { apiGroups: [GROUP], resources: ['schedulingpolicies'], resourceNames, verbs: ['use'] };
}

/** It has the policy `disks`, which every account may use. Stops at the end of the test. */
export async function policedDouble() {
  const api = await startApiServerDouble();
  const kubeconfig = api.kubeconfig();
  const double = {
    api,
    /** Runs a command against it. */
    run: (...args: string[]) =>
      runProgramInProcess(['scheduling-policy', ...args, '--kubeconfig', kubeconfig]),
    policy: (name: string, spec: object) => {
      const apiVersion = `${GROUP}/v1alpha1`;
      api.store.put(POLICIES, { apiVersion, kind: 'SchedulingPolicy', metadata: { name }, spec });
    },
    /** Lets reviews allow the use of a policy: `may(account, policy)`. */
    allow: (may: (user: string, policy: string) => boolean) => {
      api.review = ({ user = '', resourceAttributes = {} }) => may(user, resourceAttributes.name ?? '');
    },
    pod: (namespace: string, name: string, spec = {}, metadata = {}) => {
      api.store.put(`/api/v1/namespaces/${namespace}/pods`, {
        metadata: { name, namespace, ...metadata },
        spec: { schedulerName: 'default-scheduler', ...spec },
      });
    },
  };
  double.policy('disks', {
    allowed: { schedulerNames: ['default-scheduler'], nodeSelectors: { disk: ['ssd'] } },
  });
  double.allow((_, policy) => policy === 'disks');
  return double;
}

/** Answers requests for one resource with a status. */
export function refuse(api: ApiServerDouble, resource: string, status: number): void {
  api.fault = ({ path }) => (path.split('/').includes(resource) ? { status } : undefined);
}
