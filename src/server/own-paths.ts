import type { IncomingMessage } from 'node:http';

/** The endpoints of Blazar's protocol, each under `/` and `/v1`. */
export const BLAZAR_ENDPOINTS = [
  'check-create',
  'check-update',
  'commit-create',
  'commit-update',
  'on-end',
] as const;
export type BlazarEndpoint = (typeof BLAZAR_ENDPOINTS)[number];

/** The first adds defaults to pods; the second reviews them as later webhooks have left them. */
export const KUBERNETES_PATHS = {
  admission: '/kubernetes/admission',
  validation: '/kubernetes/validation',
} as const;

/** The pages of the console that have no parts that vary, and what their scripts listen to. */
const CONSOLE_PATHS = ['/', '/decisions', '/configuration', '/events'] as const;

/** Below these paths are pages whose last part varies, and the scripts of the console. */
const OWN_FOLDERS: readonly string[] = [
  '/assets',
  '/budgets',
  '/calendars',
  '/decisions',
  '/leases',
  '/login',
  '/projects',
];

/** Where people log in and out. */
export const LOGIN_PATHS = [
  '/login',
  '/login/keystone',
  '/login/project',
  '/login/oidc',
  '/login/oidc/callback',
  '/login/oidc/backchannel-logout',
  '/logout',
] as const;

/** The paths of the service, whatever its configuration. Metrics count them by name, and no option may name one of them. */
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

/** Whether a path is the service's own, so that no option may name it. */
export function isOwnPath(path: string): boolean {
  const folders = [...OWN_FOLDERS, ...Object.values(KUBERNETES_PATHS)];
  return (
    OWN_PATHS.includes(path) || folders.some((folder) => path === folder || path.startsWith(`${folder}/`))
  );
}

/** One of `KUBERNETES_PATHS`, perhaps with a token behind it: an API server without a kubeconfig for webhooks cannot send one elsewhere. */
interface KubernetesPath {
  readonly path: (typeof KUBERNETES_PATHS)[keyof typeof KUBERNETES_PATHS];
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

/** Paths are exact, with one exception: SkyPilot sends its URL as the user wrote it, and a slash at the end makes no difference. */
export function isSkypilotPath(configured: string, path: string): boolean {
  return path === configured || path === `${configured}/`;
}

/** Origin form, or absolute form, which every server must accept. Source: RFC 9112, 3.2. */
const TARGET = /^(?:https?:\/\/[^/?#]*)?([^?#]*)/i;

/** The path of a request, as it was written. */
export function pathOf({ url = '' }: Pick<IncomingMessage, 'url'>): string {
  return TARGET.exec(url)?.[1] ?? '';
}

export function queryOf({ url = '' }: Pick<IncomingMessage, 'url'>): URLSearchParams {
  return new URLSearchParams(/\?([^#]*)/.exec(url)?.[1]);
}

/** For routers: paths match letter by letter. Another spelling would be counted and guarded as another path. */
export const EXACT = { sensitive: true, strict: true } as const;
