import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readServiceAccount } from '../../../../src/kubernetes/cluster/credentials/cluster-access.ts';
import { folderOf, temporaryFolder } from '../../../support/filter-folder.ts';
import { tlsFixture } from '../../../support/tls.ts';

const POD = { KUBERNETES_SERVICE_HOST: '10.96.0.1', KUBERNETES_SERVICE_PORT: '443' };

function serviceAccount({ token = 's3cret\n', ca = 'ca.pem' } = {}): string {
  return folderOf({ token, 'ca.crt': readFileSync(tlsFixture(ca)), namespace: 'research\n' });
}

describe('the service account of a pod', () => {
  it.each([
    ['10.96.0.1', '443', 'https://10.96.0.1'],
    ['fd00::1', '6443', 'https://[fd00::1]:6443'],
    ['kubernetes.default.svc', '6443', 'https://kubernetes.default.svc:6443'],
  ])('is used at %s, port %s', (host, port, origin) => {
    const folder = serviceAccount();
    const environment = { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port };
    expect(readServiceAccount(environment, folder)).toMatchObject({
      origin,
      authorization: 'Bearer s3cret',
      namespace: 'research',
      files: [join(folder, 'token'), join(folder, 'ca.crt'), join(folder, 'namespace')],
    });
  });

  it('is refused outside of a cluster', () => {
    expect(() => readServiceAccount({}, serviceAccount())).toThrow(
      'service account: this is not a pod of a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; name a kubeconfig',
    );
  });

  it.each([
    ['without its files', () => temporaryFolder(), 'token: could not be read: there is no such file'],
    ['with an empty token', () => serviceAccount({ token: '' }), 'token: it is empty'],
    [
      'with a token of two lines',
      () => serviceAccount({ token: 's3cret\ns3cret' }),
      'token: expected a token: ASCII',
    ],
    [
      'with something else as authority',
      () => serviceAccount({ ca: 'server.key' }),
      'ca.crt: the certificate authority is not',
    ],
  ])('is refused %s', (_name, folder, message) => {
    expect(() => readServiceAccount(POD, folder())).toThrow(message);
  });

  it.each([
    ['a port that is none', { ...POD, KUBERNETES_SERVICE_PORT: 'tcp' }],
    ['a host with a path', { ...POD, KUBERNETES_SERVICE_HOST: 'a/b?' }],
    ['a host with a user', { ...POD, KUBERNETES_SERVICE_HOST: 'me:s3cret@host' }],
  ])('is refused with %s', (_name, environment) => {
    const read = () => readServiceAccount(environment, serviceAccount());
    expect(read).toThrow('KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT: expected an address');
    expect(read).not.toThrow('s3cret');
  });
});
