/** The endpoints of Blazar's protocol, each under `/` and `/v1`. */
export const BLAZAR_ENDPOINTS = [
  'check-create',
  'check-update',
  'commit-create',
  'commit-update',
  'on-end',
] as const;
export type BlazarEndpoint = (typeof BLAZAR_ENDPOINTS)[number];

/** The first adds defaults to pods; the second checks them after the changes of other webhooks. */
export const KUBERNETES_PATHS = {
  admission: '/kubernetes/admission',
  validation: '/kubernetes/validation',
} as const;

/** Console pages with a fixed path, and the event stream of their scripts. */
const CONSOLE_PATHS = ['/', '/decisions', '/configuration', '/events'] as const;

/** Folders of pages with a variable path, and of the scripts of the console. */
const OWN_FOLDERS: readonly string[] = [
  '/assets',
  '/budgets',
  '/calendars',
  '/decisions',
  '/leases',
  '/login',
  '/projects',
];

export const LOGIN_PATHS = [
  '/login',
  '/login/keystone',
  '/login/project',
  '/login/oidc',
  '/login/oidc/callback',
  '/login/oidc/backchannel-logout',
  '/logout',
] as const;

/** All paths of the service. Metrics count them by name, and no option may use one of them. */
export const OWN_PATHS: readonly string[] = [
  ...CONSOLE_PATHS,
  ...LOGIN_PATHS,
  ...['/', '/v1/'].flatMap((prefix) => BLAZAR_ENDPOINTS.map((name) => prefix + name)),
  ...Object.values(KUBERNETES_PATHS),
  '/healthz',
  '/readyz',
  '/metrics',
  '/openapi.json',
];

/** Whether a path is the service's own, so that no option may use it. */
export function isOwnPath(path: string): boolean {
  const folders = [...OWN_FOLDERS, ...Object.values(KUBERNETES_PATHS)];
  return (
    OWN_PATHS.includes(path) || folders.some((folder) => path === folder || path.startsWith(`${folder}/`))
  );
}

/**
 * One of `KUBERNETES_PATHS`, optionally with a token: API servers without a kubeconfig send it there. `undefined` for
 * other paths.
 */
export function kubernetesPathOf(path: string) {
  for (const own of Object.values(KUBERNETES_PATHS)) {
    if (path === own) {
      return { path: own, token: undefined };
    }
    const behind = path.startsWith(`${own}/`) ? path.slice(own.length + 1) : '';
    if (behind !== '' && !behind.includes('/')) {
      return { path: own, token: behind };
    }
  }
  return undefined;
}

/** Paths are exact, except for SkyPilot's: it sends the URL of the user, who may append a slash. */
export function isSkypilotPath(configured: string, path: string): boolean {
  return path === configured || path === `${configured}/`;
}

/** For routers: exact matches. Another spelling would be counted and authorized as another path. */
export const EXACT = { sensitive: true, strict: true } as const;
