/**
 * What Keystone answers about tokens, beside test/fixtures/keystone/token-answers.json. To record that file again:
 * `RECORD_KEYSTONE=1 npx vitest run --project proofs test/peers/keystone-answers.proof.test.ts`
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, expect, it } from 'vitest';
import { projectFile } from '../support/files.ts';
import type { RecordedAnswer } from '../support/recorded-keystone.ts';
import { RealKeystone } from './keystone.ts';

const FILE = projectFile('test/fixtures/keystone/token-answers.json');
const HEADERS = ['content-type', 'x-subject-token', 'location', 'www-authenticate', 'vary'];

const real = await RealKeystone.start();
afterAll(() => real?.remove());

it.skipIf(real === undefined)('answers as recorded', async () => {
  const keystone = real as RealKeystone;
  const { project, scoped, password, applicationCredential } = requests(keystone);
  const own = await keystone.token('blazar', { project: 'service' });
  const alice = await keystone.token('alice');
  const revoked = await keystone.token('bob');
  await keystone.revoke(revoked);
  const credential = await applicationCredential();
  const admin = { methods: ['password'], password: password('admin') };
  await keystone.ask(
    'PUT',
    `/system/users/${await userId(keystone, 'admin')}/roles/${await roleId(keystone)}`,
  );
  await keystone.ask(
    'PUT',
    `/domains/default/users/${await userId(keystone, 'admin')}/roles/${await roleId(keystone)}`,
  );
  const tokens = {
    alice,
    dave: await keystone.token('dave', { domain: 'other' }),
    'of-application-credential': await keystone.tokenFor(credential),
    unscoped: await keystone.token('alice', { project: null }),
    'of-domain': await keystone.tokenFor({ identity: admin, scope: { domain: { id: 'default' } } }),
    'of-system': await keystone.tokenFor({ identity: admin, scope: { system: { all: true } } }),
    revoked,
    unknown: 'nonsense',
  };

  const answers: Record<string, RecordedAnswer> = {};
  const record = async (
    name: string,
    method: string,
    path: string,
    { body, own: token = null, subject }: Sent = {},
  ) => {
    const headers = subject === undefined ? {} : { 'X-Subject-Token': subject };
    const answer = await keystone.ask(method, path, body, token, headers);
    answers[name] = {
      request: `${method} ${new URL(keystone.url).pathname}${path}`,
      status: answer.status,
      headers: Object.fromEntries(
        HEADERS.flatMap((header) => {
          const value = answer.headers.get(header);
          return value === null ? [] : [[header, value]];
        }),
      ),
      body: typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body),
    };
  };
  const post = (name: string, auth: object) => record(name, 'POST', '/auth/tokens', { body: { auth } });
  await post('token', scoped('blazar', project('service')));
  await post('token of an application credential', credential);
  await post('wrong password', scoped('blazar', project('service'), 'wrong'));
  await post('wrong project', scoped('blazar', project('nowhere')));
  await post('no project of ours', scoped('alice', project('physics')));
  await post('no credentials', {});
  for (const [name, subject] of Object.entries(tokens)) {
    await record(`validate ${name}`, 'GET', '/auth/tokens?nocatalog', { own, subject });
  }
  await record('validate with a wrong token', 'GET', '/auth/tokens?nocatalog', {
    own: 'wrong',
    subject: alice,
  });
  await deleteCredentials(keystone, credential.identity.application_credential.id);
  await post('deleted application credential', credential);
  const carol = await keystone.token('carol');
  await record('validate without a role', 'GET', '/auth/tokens?nocatalog', { own: carol, subject: alice });
  await record('no such path', 'GET', '/v3/auth/tokens', { own });
  await record('versions', 'GET', '/../');

  const found = harmless(answers, keystone.url);
  if (process.env.RECORD_KEYSTONE !== undefined) {
    writeFileSync(FILE, `${JSON.stringify(found, null, 2)}\n`);
  }
  expect(found).toEqual(JSON.parse(readFileSync(FILE, 'utf8')));
});

interface Sent {
  readonly body?: object;
  readonly own?: string | null;
  readonly subject?: string;
}

function requests(keystone: RealKeystone) {
  const domain = { name: 'Default' };
  const project = (name: string) => ({ project: { name, domain } });
  const password = (name: string, secret = name) => ({ user: { name, domain, password: secret } });
  const scoped = (name: string, scope: object, secret?: string) => ({
    identity: { methods: ['password'], password: password(name, secret) },
    scope,
  });
  const applicationCredential = async () => {
    const token = await keystone.token('blazar', { project: 'service' });
    const body = { application_credential: { name: 'enforcement' } };
    const path = `/users/${keystone.ids.users.blazar}/application_credentials`;
    const answer = await keystone.ask('POST', path, body, token);
    const { id, secret } = (answer.body as { application_credential: { id: string; secret: string } })
      .application_credential;
    return { identity: { methods: ['application_credential'], application_credential: { id, secret } } };
  };
  return { project, password, scoped, applicationCredential };
}

async function deleteCredentials(keystone: RealKeystone, id: string): Promise<void> {
  const token = await keystone.token('blazar', { project: 'service' });
  const path = `/users/${keystone.ids.users.blazar}/application_credentials/${id}`;
  await keystone.ask('DELETE', path, undefined, token);
}

async function userId(keystone: RealKeystone, name: string): Promise<string> {
  const { body } = await keystone.ask('GET', `/users?name=${name}`);
  return (body as { users: { id: string }[] }).users[0]?.id ?? '';
}

async function roleId(keystone: RealKeystone): Promise<string> {
  const { body } = await keystone.ask('GET', '/roles?name=admin');
  return (body as { roles: { id: string }[] }).roles[0]?.id ?? '';
}

/** The same in every recording: ids and tokens that are none, an hour from 09:00 on 1 December 2026, roles by name. */
function harmless(answers: Record<string, RecordedAnswer>, url: string): Record<string, RecordedAnswer> {
  const ids = new Map<string, string>();
  const replace = (text: string) =>
    text
      .replaceAll(new URL(url).origin, 'https://keystone.example.org')
      .replaceAll(/gAAAA[\w=-]+/g, 'a-token')
      .replaceAll(/\b[0-9a-f]{32}\b/g, (id) => {
        const known = ids.get(id) ?? String(ids.size + 1).padStart(32, '0');
        ids.set(id, known);
        return known;
      })
      .replaceAll(/("audit_ids": ?)\[[^\]]*\]/g, '$1["harmless"]')
      .replaceAll(/("expires_at": ?)"[^"]*"/g, '$1"2026-12-01T10:00:00.000000Z"')
      .replaceAll(/("issued_at": ?)"[^"]*"/g, '$1"2026-12-01T09:00:00.000000Z"');
  const sorted = (text: string) => {
    const body = text.startsWith('{')
      ? (JSON.parse(text) as { token?: { roles?: { name: string }[] } })
      : undefined;
    body?.token?.roles?.sort((one, other) => (one.name < other.name ? -1 : 1));
    return body === undefined ? text : JSON.stringify(body);
  };
  return Object.fromEntries(
    Object.entries(answers).map(([name, { request, status, headers, body }]) => [
      name,
      {
        request,
        status,
        headers: Object.fromEntries(
          Object.entries(headers).map(([header, value]) => [header, replace(value)]),
        ),
        body: replace(sorted(body)),
      },
    ]),
  );
}
