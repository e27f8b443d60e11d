/** A reload reads the authorities of other services again, also if nothing but the content of their file has changed. */
import { copyFileSync, readFileSync } from 'node:fs';
import { createServer as createHttpsServer } from 'node:https';
import { connect } from 'node:net';
import { createServer, type TlsOptions } from 'node:tls';
import { expect, it } from 'vitest';
import { requireConfiguration } from '../../../src/enforcement/configuration.ts';
import { SECTIONS } from '../../../src/server/configuration/sections.ts';
import { DecisionStores } from '../../../src/server/decisions/stores.ts';
import { confFile, sectionText, temporaryFile } from '../../support/files.ts';
import { listen } from '../../support/listening.ts';
import { recordingLogger } from '../../support/logger.ts';
import { capturedText } from '../../support/requests.ts';
import { runServiceOnFile } from '../../support/running-service.ts';
import { tlsFixture } from '../../support/tls.ts';
import { ValidatingKeystone } from '../../support/validating-keystone.ts';

const SHOWN: TlsOptions = {
  cert: readFileSync(tlsFixture('server.pem')),
  key: readFileSync(tlsFixture('server.key')),
};
const limit = '[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = 345600\n';

const UNSEEN = { stored: () => {}, dropped: () => {}, failed: () => {}, removed: () => {} };

/** A file with the authority of somebody else. */
function otherAuthority() {
  const file = temporaryFile('ca.pem', readFileSync(tlsFixture('second-ca.pem'), 'utf8'));
  return { file, replace: () => copyFileSync(tlsFixture('ca.pem'), file) };
}

it('of Keystone, which validates tokens', async () => {
  const keystone = await ValidatingKeystone.start();
  keystone.tokens.set('gAAAAAB-of-blazar', 'service');
  const behind = Number(new URL(keystone.url).port);
  const { port } = await listen(
    createServer(SHOWN, (socket) =>
      socket
        .on('error', () => {})
        .pipe(connect(behind))
        .pipe(socket),
    ),
  );
  const { file, replace } = otherAuthority();
  const account = { ...keystone.account, auth_url: `https://localhost:${port}/v3`, cafile: file };
  const { post, service } = await runServiceOnFile(
    `${limit}[service]\nport = 0\nkeystone_auth = true\n${sectionText('keystone', account)}`,
  );
  const lease = capturedText('check-create-physical-host.json');
  const check = async () =>
    (await post('/check-create', lease, { 'X-Auth-Token': 'gAAAAAB-of-blazar' })).status;
  expect(await check()).toBe(503);
  replace();
  expect(await service.reload()).toBe(true);
  expect(await check()).toBe(204);
});

it('of the issuer of OpenID Connect', async () => {
  const server = createHttpsServer(SHOWN, (_, response) => {
    const paths = ['authorization_endpoint', 'token_endpoint', 'jwks_uri'];
    response.setHeader('Content-Type', 'application/json');
    response.end(
      JSON.stringify({ issuer, ...Object.fromEntries(paths.map((path) => [path, `${issuer}/${path}`])) }),
    );
  });
  const { port } = await listen(server);
  const issuer = `https://localhost:${port}`;
  const { file, replace } = otherAuthority();
  const { url, service } = await runServiceOnFile(
    `${limit}[service]\nport = 0\n[oidc]\nissuer = ${issuer}\nclient_id = x\ncafile = ${file}\n`,
  );
  const login = async () =>
    (await fetch(`${url}/login/oidc`, { redirect: 'manual' })).headers.get('Location');
  expect(await login()).toBeNull();
  replace();
  expect(await service.reload()).toBe(true);
  expect(await login()).toContain(`${issuer}/authorization_endpoint?`);
});

it('of PostgreSQL, which stores decisions', async () => {
  const { file, replace } = otherAuthority();
  const connection = `postgresql://a:b@127.0.0.1:1/c?sslmode=verify-full&sslrootcert=${file}`;
  const text = `${limit}[service]\ndecision_store = all\n[ledger]\nconnection = ${connection}\n`;
  const configuration = await requireConfiguration(
    { configFiles: [confFile(text)], environment: {} },
    SECTIONS,
  );
  const stores = new DecisionStores(recordingLogger(), UNSEEN);
  const queue = async () => (await stores.open(configuration))?.queue;
  const before = await queue();
  expect(await queue()).toBe(before);
  replace();
  expect(await queue()).not.toBe(before);
  await stores.close(0);
});
