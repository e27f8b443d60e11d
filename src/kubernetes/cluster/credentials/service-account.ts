/** The access of a pod: address and files that Kubernetes gives to every container. */

import { isIPv6 } from 'node:net';
import { join } from 'node:path';
import { ConfigurationError, errorText } from '../../../base/errors.ts';
import { readTextFile } from '../../../config/read-file.ts';
import { bearer, type ClusterAccess, parseServer, tlsMistake } from './cluster-access.ts';

export const SERVICE_ACCOUNT_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount';

/**
 * Reads the service account of this pod.
 * @throws ConfigurationError if this is not a pod, or one without `automountServiceAccountToken`
 */
export function readServiceAccount(
  environment: NodeJS.ProcessEnv = process.env,
  folder = SERVICE_ACCOUNT_FOLDER,
): ClusterAccess {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = environment;
  if (host === undefined || host === '' || port === undefined || port === '') {
    return refuse(
      'this is not a pod of a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; name a kubeconfig',
    );
  }
  const [token, ca, namespace] = ['token', 'ca.crt', 'namespace'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  const server = attempt('KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT', () =>
    parseServer(`https://${isIPv6(host) ? `[${host}]` : host}:${port}`),
  );
  const authorization = attempt(token, () => bearer(read(token).trim()));
  const tls = { ca: attempt(ca, () => read(ca)), cert: undefined, key: undefined, servername: undefined };
  const mistake = tlsMistake(tls);
  return mistake === undefined
    ? { ...server, tls, authorization, namespace: optional(namespace), files: [token, ca, namespace] }
    : refuse(`${ca}: ${mistake}`);
}

function read(path: string): string {
  try {
    return readTextFile(path);
  } catch (thrown) {
    throw new Error(`could not be read: ${errorText(thrown)}`);
  }
}

/** Tokens for other audiences are mounted without it. */
function optional(path: string): string | undefined {
  try {
    return readTextFile(path).trim() || undefined;
  } catch {
    return undefined;
  }
}

function attempt<Result>(what: string, work: () => Result): Result {
  try {
    return work();
  } catch (thrown) {
    return refuse(`${what}: ${errorText(thrown)}`);
  }
}

function refuse(message: string): never {
  throw new ConfigurationError([{ severity: 'error', message: `service account: ${message}` }]);
}
