/** At the first, defaults are added; at the second, what later webhooks have made of the pod is judged as it stands. */
export const KUBERNETES_PATHS = {
  admission: '/kubernetes/admission',
  validation: '/kubernetes/validation',
} as const;

/** The paths at which the service answers, whatever its configuration says: counted by name, and not free for others. */
export const OWN_PATHS: readonly string[] = [
  '/',
  '/login',
  '/logout',
  ...['', '/v1'].flatMap((version) =>
    ['check-create', 'check-update', 'commit-create', 'commit-update', 'on-end'].map(
      (name) => `${version}/${name}`,
    ),
  ),
  ...Object.values(KUBERNETES_PATHS),
  '/healthz',
  '/readyz',
  '/metrics',
  '/openapi.json',
];
