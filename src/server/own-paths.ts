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

/** One of `KUBERNETES_PATHS`, and the token behind it: an API server without a kubeconfig for webhooks can send none elsewhere. */
export interface KubernetesPath {
  readonly path: (typeof KUBERNETES_PATHS)[keyof typeof KUBERNETES_PATHS];
  /** `undefined`: nothing stands behind it. */
  readonly token: string | undefined;
}

/** `undefined` for every other path. */
export function kubernetesPathOf(path: string): KubernetesPath | undefined {
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

/**
 * Whether a request is at the path that is configured for SkyPilot. Paths are exact, with this one exception: SkyPilot sends the
 * URL as somebody has written it, and with a slash at its end it is the same.
 */
export function isSkypilotPath(configured: string, path: string): boolean {
  return path === configured || path === `${configured}/`;
}

/** Of a router: paths are what they are, letter by letter. Another spelling would be counted and guarded as another path. */
export const EXACT = { sensitive: true, strict: true } as const;
