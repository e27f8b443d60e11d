/** Address and credentials for an API server, from kubeconfigs and service accounts. */
import { isIP, isIPv6 } from 'node:net';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import { ConfigurationError, errorText } from '../../../base/errors.ts';
import { isCertificate } from '../../../config/pem.ts';
import { readTextFile } from '../../../config/read-file.ts';

export interface ClusterAccess {
  /** `https://10.0.0.1:6443` */
  readonly origin: string;
  /** Prefix of the path of each call: empty, or such as `/k8s/clusters/c-1`. */
  readonly basePath: string;
  readonly tls: ClusterTls;
  /** The value of the header. `undefined` = not sent. */
  readonly authorization: string | undefined;
  readonly namespace: string | undefined;
  /** The files that all of this was read from: a change of one may change it. */
  readonly files: readonly string[];
  /** The program for the credentials missing above. */
  readonly exec?: ExecPlugin | undefined;
}

/** `users[].user.exec` of a kubeconfig. */
export interface ExecPlugin {
  /** `client.authentication.k8s.io/v1` */
  readonly apiVersion: string;
  /** A path, or a name that `PATH` is searched for. */
  readonly command: string;
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value: string }[];
  /** What to do if the program is missing. */
  readonly installHint: string | undefined;
  /** Cluster information for the program. `undefined` = none. */
  readonly cluster: Readonly<Record<string, unknown>> | undefined;
  /** `/etc/kubeconfig:12` */
  readonly place: string;
}

interface ClusterTls {
  /** `undefined` = Node's trusted authorities. */
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
  /** The required name of the certificate. `undefined` = the host of the address. */
  readonly servername: string | undefined;
}

const LOOPBACK = /^(127\.\d+\.\d+\.\d+|\[::1\]|localhost)$/;

/** The parts of an address. Throws an `Error` with the expectation, which never repeats the address. */
export function parseServer(server: string): Pick<ClusterAccess, 'origin' | 'basePath'> {
  const url = URL.canParse(server) ? new URL(server) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.hostname === '') {
    throw new Error('expected an address such as https://10.0.0.1:6443');
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new Error('expected an address without user, password, query and fragment');
  }
  if (url.protocol === 'http:' && !LOOPBACK.test(url.hostname)) {
    throw new Error(
      'expected an https address, since policies and tokens could be changed and read on the way',
    );
  }
  return { origin: url.origin, basePath: url.pathname.replace(/\/+$/, '') };
}

/** The header of a token. Throws an `Error` that does not repeat it. */
export function bearer(token: string): string {
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new Error(
      token === '' ? 'it is empty' : 'expected a token: ASCII characters on one line, without spaces',
    );
  }
  return `Bearer ${token}`;
}

/** What is wrong with authorities, or with a certificate and its key; `undefined` = usable. */
export function tlsMistake({ ca, cert, key, servername }: ClusterTls): string | undefined {
  if (servername !== undefined && (isIP(servername) !== 0 || !/^[\w.*-]+$/.test(servername))) {
    return 'tls-server-name: expected a DNS name';
  }
  if (ca !== undefined && !isCertificate(ca)) {
    return 'the certificate authority is not a PEM certificate';
  }
  if (cert !== undefined && !isCertificate(cert)) {
    return 'the client certificate is not a PEM certificate';
  }
  if ((cert === undefined) !== (key === undefined)) {
    return `a client ${cert === undefined ? 'key without its certificate' : 'certificate without its key'}`;
  }
  try {
    createSecureContext({ ca, cert, key });
    return undefined;
  } catch {
    // OpenSSL's message does not help, and might quote what it read.
    return 'the client certificate and the client key do not match, or the key is not an unencrypted PEM key';
  }
}

/** Whether both can use the same connections. */
export function isSameConnection(one: ClusterAccess, other: ClusterAccess): boolean {
  return one.origin === other.origin && isDeepStrictEqual(one.tls, other.tls);
}

const SERVICE_ACCOUNT_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount';

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

/** Missing for tokens of other audiences. */
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
