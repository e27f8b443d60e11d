import { admissionAnswerSchema, admissionReviewSchema } from '../../kubernetes/admission-review.ts';

/** Those of admission webhooks, which are described only where Kubernetes is served. */
export const schemasOfKubernetes = {
  AdmissionReview: admissionReviewSchema,
  ReviewedAdmission: admissionAnswerSchema,
} as const;
