/** Reviews an object like the webhook, for its service account. */

import type { PodRequest } from '../../kubernetes/admission/admission-review.ts';
import { asAdmitted, withAdditions } from '../../kubernetes/admission/api-server.ts';
import type { DecidedAdmission, PodAdmission } from '../../kubernetes/admission/pod-admission.ts';
import { serviceAccount } from '../../kubernetes/policies/access.ts';
import { type Pod, serviceAccountName } from '../../kubernetes/policies/pod.ts';
import type { PolicySource } from '../../kubernetes/policies/policy-source.ts';
import type { CheckedObject } from './objects.ts';

/** Judges by the policies of files or of a cluster. */
export interface Judges {
  /** `undefined` = there are none, only rules. */
  readonly source: PolicySource | undefined;
  readonly admission: PodAdmission;
  /** What the API server gives to pods without one. */
  readonly defaultPriorityClass: string | undefined;
}

export interface ReviewedObject {
  readonly decided: DecidedAdmission;
  /** The names of the account's policies. */
  readonly policies: readonly string[];
  /** The pod as written, with what policies have added. */
  readonly written: Pod;
}

export interface ReviewAs {
  /** The name of its service account. Default: that of the pod. */
  readonly account?: string | undefined;
  /** Who sends the request, for rules. Default: not known, as of the pods that a controller will create. */
  readonly user?: { readonly name: string; readonly groups: readonly string[] } | undefined;
  /** The pod as it is: then it is an update. Default: a new one. */
  readonly current?: Pod | undefined;
}

/** Of an object that creates pods, its pods. */
export async function reviewObject(
  { source, admission, defaultPriorityClass }: Judges,
  object: CheckedObject,
  namespace: string,
  { account = serviceAccountName(object.pod), user, current }: ReviewAs = {},
): Promise<ReviewedObject> {
  const isTemplate = object.kind === 'DaemonSet';
  const completed = ({ spec, ...rest }: Pod) =>
    asAdmitted(
      { ...rest, spec: { ...spec, serviceAccountName: account } },
      { defaultPriorityClass, isTemplate },
    );
  const pod = completed(object.pod);
  const request: PodRequest = {
    ...{ kind: isTemplate ? 'template' : 'pod', uid: '', name: object.name, namespace, pod },
    ...{ current: current && completed(current), isUpdate: current !== undefined, dryRun: true },
    ...{ username: user?.name, groups: user?.groups ?? [] },
  };
  const isLater = !isTemplate && object.kind !== 'Pod' && user === undefined;
  const options = { addDefaults: true, workload: isLater ? object.kind : undefined };
  const policies = await source?.policiesOf(serviceAccount(namespace, account));
  const decided =
    policies === undefined
      ? await admission.admit(request, options)
      : admission.review(request, policies, options);
  const written = withAdditions(object.pod, pod, decided.pod ?? pod);
  return { decided, policies: policies?.names ?? [], written };
}
