import { REQUEST_NAMES } from '../skypilot/request/user-request.ts';

/**
 * The operations in records: those of Blazar, SkyPilot's requests by their names, what got past SkyPilot's policies, and the webhooks of
 * Kubernetes.
 */
export const OPERATIONS = [
  'create',
  'update',
  'commit-create',
  'commit-update',
  'end',
  ...REQUEST_NAMES.map((name) => `skypilot.${name}` as const),
  'skypilot.other',
  'skypilot.bypass',
  'kubernetes.admission',
  'kubernetes.validation',
] as const;

export type RecordedOperation = (typeof OPERATIONS)[number];
