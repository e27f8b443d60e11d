/** Judges requests by the policies of files, without waiting. */
import type { BindingRequest, PodRequest } from '../../../src/kubernetes/admission/admission-review.ts';
import {
  type AdmissionOptions,
  accountOf,
  type DecidedAdmission,
  PodAdmission,
  type PodAdmissionOptions,
} from '../../../src/kubernetes/admission/pod-admission.ts';
import type { SchedulingPolicies } from '../../../src/kubernetes/policies/scheduling-policies.ts';

export function reviewer(source: SchedulingPolicies, options: PodAdmissionOptions) {
  const admission = new PodAdmission(source, options);
  return {
    review: (request: PodRequest | BindingRequest, how: AdmissionOptions): DecidedAdmission =>
      admission.review(request, source.policiesOf(accountOf(request)), how),
  };
}
