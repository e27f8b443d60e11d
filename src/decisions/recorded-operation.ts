import { REQUEST_NAMES } from '../skypilot/user-request.ts';

/** What is decided about: the three of Blazar, requests of SkyPilot by the names that it gives them, and pods of Kubernetes. */
export const OPERATIONS = [
  'create',
  'update',
  'commit-create',
  'commit-update',
  'end',
  ...REQUEST_NAMES.map((name) => `skypilot.${name}` as const),
  'skypilot.other',
  'kubernetes.admission',
  'kubernetes.validation',
] as const;

export type RecordedOperation = (typeof OPERATIONS)[number];
