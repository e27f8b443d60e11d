import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../../../src/base/errors.ts';
import { readKubeconfig } from '../../../../src/kubernetes/cluster/credentials/kubeconfig.ts';
import { folderOf } from '../../../support/filter-folder.ts';
import { tlsFixture } from '../../../support/tls.ts';

const pem = (name: string) => readFileSync(tlsFixture(name), 'utf8');
const BETA = 'apiVersion: client.authentication.k8s.io/v1beta1';
const base64 = (name: string) => Buffer.from(pem(name)).toString('base64');

/** Each on the second line of its part, so that lines can be told. */
function kubeconfig({
  cluster = 'server: https://10.0.0.1:6443',
  user = 'token: s3cret',
  context = 'cluster: prod',
  further = '',
} = {}): string {
  return `apiVersion: v1
kind: Config
current-context: main
clusters:
- name: prod
  cluster:
    ${cluster.replaceAll('\n', '\n    ')}
users:
- name: me
  user:
    ${user.replaceAll('\n', '\n    ')}
contexts:
- name: main
  context:
    user: me
    ${context.replaceAll('\n', '\n    ')}
- name: other
  context: {cluster: prod, namespace: other}
- name: nobody
  context: {cluster: prod, user: nobody}
- name: nowhere
  context: {cluster: nowhere}
${further}`;
}

function read(text: string, context?: string, files: Readonly<Record<string, string>> = {}) {
  const folder = folderOf({ config: text, ...files });
  try {
    return { folder, ...readKubeconfig(join(folder, 'config'), context) };
  } catch (thrown) {
    if (!(thrown instanceof ConfigurationError)) {
      throw thrown;
    }
    expect(thrown.message).not.toContain('s3cret');
    throw new Error(thrown.message.replaceAll(folder, ''));
  }
}

describe('reading a kubeconfig', () => {
  it('takes the current context', () => {
    expect(read(kubeconfig({ context: 'cluster: prod\nnamespace: research' }))).toMatchObject({
      origin: 'https://10.0.0.1:6443',
      basePath: '',
      authorization: 'Bearer s3cret',
      namespace: 'research',
      tls: { ca: undefined, cert: undefined, key: undefined, servername: undefined },
    });
  });

  it('takes the context that is named, with no user if that has none', () => {
    expect(read(kubeconfig(), 'other')).toMatchObject({ authorization: undefined, namespace: 'other' });
  });

  it('keeps the path of an address', () => {
    const cluster = 'server: https://rancher.example/k8s/clusters/c-1/';
    expect(read(kubeconfig({ cluster }))).toMatchObject({
      origin: 'https://rancher.example',
      basePath: '/k8s/clusters/c-1',
    });
  });

  it('reads files relative to its folder, and says which they are', () => {
    const cluster = 'server: https://10.0.0.1\ncertificate-authority: ca.pem\ntls-server-name: api.example';
    const user = 'client-certificate: client.pem\nclient-key: ./client.key\ntokenFile: token';
    const files = {
      'ca.pem': pem('ca.pem'),
      'client.pem': pem('client.pem'),
      'client.key': pem('client.key'),
      token: 'fr0m-file\n',
    };
    const { folder, ...access } = read(kubeconfig({ cluster, user }), undefined, files);
    expect(access.tls).toEqual({
      ca: pem('ca.pem'),
      cert: pem('client.pem'),
      key: pem('client.key'),
      servername: 'api.example',
    });
    expect(access.authorization).toBe('Bearer fr0m-file');
    expect(new Set(access.files)).toEqual(
      new Set(['config', 'ca.pem', 'client.pem', 'client.key', 'token'].map((name) => join(folder, name))),
    );
  });

  it('prefers data to files and a tokenFile to a token, as kubectl does', () => {
    const cluster = `server: https://10.0.0.1\ncertificate-authority: none.pem\ncertificate-authority-data: ${base64('ca.pem')}`;
    const access = read(kubeconfig({ cluster, user: 'token: one\ntokenFile: token' }), undefined, {
      token: 'two',
    });
    expect(access.tls.ca).toBe(pem('ca.pem'));
    expect(access.authorization).toBe('Bearer two');
  });

  it('sends user and password where these are all there is', () => {
    expect(read(kubeconfig({ user: 'username: me\npassword: "s3cret:x"' })).authorization).toBe(
      `Basic ${Buffer.from('me:s3cret:x').toString('base64')}`,
    );
  });

  it('describes the credential plugin, whose path is relative to its folder', () => {
    const user = `exec:\n  ${BETA}\n  command: bin/log-in\n  args: [get-token]\n  installHint: ask us`;
    const { folder, exec } = read(kubeconfig({ user }));
    expect(exec).toEqual({
      apiVersion: 'client.authentication.k8s.io/v1beta1',
      command: join(folder, 'bin/log-in'),
      args: ['get-token'],
      env: [],
      installHint: 'ask us',
      cluster: undefined,
      place: `${join(folder, 'config')}:11`,
    });
  });

  it('ignores what kubectl ignores, and users and clusters that are not in use', () => {
    const further = `preferences: {colors: true}
__proto__: {clusters: []}
`;
    const text = kubeconfig({ further }).replace(
      'users:',
      'users:\n- name: else\n  user: {exec: {command: login}}',
    );
    expect(read(text)).toMatchObject({ origin: 'https://10.0.0.1:6443' });
  });

  it('reads JSON', () => {
    const access = read(
      '{"current-context":"a","contexts":[{"name":"a","context":{"cluster":"b"}}],"clusters":[{"name":"b","cluster":{"server":"http://127.0.0.1:8001"}}]}',
    );
    expect(access).toMatchObject({ origin: 'http://127.0.0.1:8001', authorization: undefined });
  });

  it.each<[name: string, text: string, message: string]>([
    ['an empty file', '', '/config:1: expected a mapping with clusters'],
    ['a mapping of nothing', '{}', '/config: current-context: expected the name of a context'],
    ['a file that is cut off', kubeconfig().slice(0, 40), '/config:3: '],
    ['two documents', `${kubeconfig()}\n---\na: b\n`, 'another document begins here'],
    [
      'a key twice',
      kubeconfig({ user: 'token: s3cret\ntoken: s3cret2' }),
      '/config:12: token: duplicate key',
    ],
    ['a list of clusters that is none', 'clusters: {}', '/config:1: clusters: expected a list'],
  ])('refuses %s', (_name, text, message) => {
    expect(() => read(text)).toThrow(message);
  });

  it.each<[context: string, message: string]>([
    ['min', '/config:12: contexts: there is no context "min"; the nearest right name is "main"'],
    ['__proto__', '/config:12: contexts: there is no context "__proto__"'],
    ['nobody', '/config:8: users: there is no user "nobody"'],
    ['nowhere', '/config:4: clusters: there is no cluster "nowhere"'],
  ])('refuses the context %s', (context, message) => {
    expect(() => read(kubeconfig(), context)).toThrow(message);
  });

  it.each<[cluster: string, message: string]>([
    ['server: 10.0.0.1:6443', '/config:7: server: expected an address such as https://10.0.0.1:6443'],
    ['server: http://10.0.0.1', '/config:7: server: expected an https address, since'],
    ['server: https://me:s3cret@10.0.0.1', '/config:7: server: expected an address without user, password'],
    [
      'server: https://10.0.0.1\ninsecure-skip-tls-verify: true',
      '/config:8: insecure-skip-tls-verify: expected nothing',
    ],
    [
      'server: https://10.0.0.1\nproxy-url: http://proxy',
      '/config:8: proxy-url: expected nothing: proxies are not supported',
    ],
    ['server: https://10.0.0.1\ntls-server-name: 10.0.0.1', 'tls-server-name: expected a DNS name'],
    [
      'server: https://10.0.0.1\ncertificate-authority: none.pem',
      '/config:8: certificate-authority: /none.pem: could not be read: there is no such file',
    ],
    [
      'server: https://10.0.0.1\ncertificate-authority-data: "%%%"',
      '/config:8: certificate-authority-data: expected base64',
    ],
    [
      'server: https://10.0.0.1\ncertificate-authority-data: s3cret11',
      '/config:6: cluster: the certificate authority is not a PEM certificate',
    ],
  ])('refuses the cluster %j', (cluster, message) => {
    expect(() => read(kubeconfig({ cluster }))).toThrow(message);
  });

  it.each<[user: string, message: string]>([
    ['exec: {command: aws}', '/config:11: apiVersion: expected client.authentication.k8s.io/v1 or'],
    [
      'exec:\n  apiVersion: client.authentication.k8s.io/v1alpha1',
      '/config:12: apiVersion: expected client.',
    ],
    [`exec:\n  ${BETA}\n  command: ""`, '/config:13: command: expected a program'],
    [`exec:\n  ${BETA}\n  command: aws\n  env: [{name: A}]`, '/config:14: value: expected a string'],
    [
      `exec:\n  ${BETA}\n  command: aws\n  interactiveMode: Always`,
      '/config:14: interactiveMode: expected Never or IfAvailable, because the program cannot ask a user',
    ],
    [
      'exec: {apiVersion: client.authentication.k8s.io/v1, command: aws}',
      '/config:11: exec: expected interactiveMode too: Never or IfAvailable',
    ],
    [
      `token: s3cret\nexec: {${BETA}, command: aws}`,
      '/config:11: token: expected nothing, because the credentials come from exec',
    ],
    ['auth-provider: {name: gcp}', '/config:11: auth-provider: expected nothing: Kubernetes has replaced it'],
    ['token: s3cret\nas: admin', '/config:12: as: expected nothing: impersonation'],
    ['token: "s3cret s3cret"', '/config:11: token: expected a token: ASCII characters on one line'],
    ['tokenFile: token', '/config:11: tokenFile: /token: could not be read: there is no such file'],
    ['token: a\nusername: b', '/config:12: username: expected nothing, because a token is set too'],
    [
      `client-certificate-data: ${base64('client.pem')}`,
      '/config:10: user: a client certificate without its key',
    ],
    [`client-key-data: ${base64('client.key')}`, '/config:10: user: a client key without its certificate'],
    [
      `client-certificate-data: ${base64('client.pem')}\nclient-key-data: ${base64('server.key')}`,
      '/config:10: user: the client certificate and the client key do not match',
    ],
    ['- s3cret', '/config:10: user: expected a mapping, got something else'],
  ])('refuses the user %j', (user, message) => {
    expect(() => read(kubeconfig({ user }))).toThrow(message);
  });

  it('refuses a file without an end', () => {
    expect(() => readKubeconfig('/dev/zero')).toThrow(
      '/dev/zero: could not be read: it is longer than 1048576 bytes',
    );
  });
});
