/** The paths at which the service answers, whatever its configuration says: counted by name, and not free for others. */
export const OWN_PATHS: readonly string[] = [
  '/',
  '/login',
  '/logout',
  ...['', '/v1'].flatMap((version) =>
    ['check-create', 'check-update', 'on-end'].map((name) => `${version}/${name}`),
  ),
  '/healthz',
  '/readyz',
  '/metrics',
  '/openapi.json',
];
