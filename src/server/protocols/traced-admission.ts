/** A span for each review of a pod, or of what will create pods. */

import { inSpan, shownAttribute } from '../../base/tracing.ts';
import type {
  BindingRequest,
  PodRequest,
  WorkloadRequest,
} from '../../kubernetes/admission/admission-review.ts';
import type { DecidedAdmission } from '../../kubernetes/admission/pod-admission.ts';

/** `admit`: judges the request, with the sources of its policies. */
export function tracedAdmission(
  request: PodRequest | BindingRequest | WorkloadRequest,
  admit: () => Promise<DecidedAdmission>,
): Promise<DecidedAdmission> {
  const { kind, namespace, dryRun } = request;
  return inSpan(
    {
      name: `admission ${kind}`,
      attributes: {
        'k8s.namespace.name': shownAttribute(namespace),
        'blazar_enforcement.admission.kind': kind,
        'blazar_enforcement.admission.dry_run': dryRun,
      },
    },
    admit,
    ({ allowed, failed, isAudited, patch }) => ({
      attributes: {
        'blazar_enforcement.admission.allowed': allowed,
        'blazar_enforcement.admission.audit': isAudited,
        'blazar_enforcement.admission.changed': patch.length > 0,
        'blazar_enforcement.admission.failed': failed !== undefined,
      },
      errorType: failed === undefined ? undefined : '_OTHER',
    }),
  );
}
