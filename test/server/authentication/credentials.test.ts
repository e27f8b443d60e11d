import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { confFile, temporaryFile } from '../../support/files.ts';
import { temporaryFolder } from '../../support/filter-folder.ts';
import { metric } from '../../support/metric.ts';
import { capturedText } from '../../support/requests.ts';
import { runServiceOnFile, startMistakes } from '../../support/running-service.ts';
import { tlsFixture } from '../../support/tls.ts';

const FITS = capturedText('check-create-physical-host.json');

const FILTER = '[enforcement]\nenabled_filters = MaxLeaseDurationFilter\n';

/** Lines of `[service]`, behind the five lines that are always there. */
const textOf = (...lines: string[]) => `${FILTER}\n[service]\nport = 0\n${lines.join('\n')}\n`;
const confOf = (...lines: string[]) => confFile(textOf(...lines));

async function serve(lines: readonly string[]) {
  const running = await runServiceOnFile(textOf(...lines), { pollMs: 100 });
  const statusOf = async (token: string) =>
    (await running.post('/on-end', FITS, { 'X-Auth-Token': token })).status;
  return { ...running, statusOf };
}

async function mistakesOf(conf: string): Promise<string[]> {
  const mistakes = await startMistakes({ environment: {}, configFiles: [conf] });
  return mistakes.map((line) => line.replaceAll(conf, 'CONF'));
}

const cert = `tls_cert_file = ${tlsFixture('server.pem')}`;
const key = `tls_key_file = ${tlsFixture('server.key')}`;

describe('[service]', () => {
  it('one of tls_cert_file and tls_key_file is no TLS', async () => {
    const both = 'expected tls_cert_file and tls_key_file together, got one of them';
    expect(await mistakesOf(confOf(cert))).toEqual([`CONF:6: [service] tls_cert_file: ${both}`]);
    expect(await mistakesOf(confOf(key))).toEqual([`CONF:6: [service] tls_key_file: ${both}`]);
  });

  it('client_ca_file without TLS would ask nobody for a certificate', async () => {
    expect(await mistakesOf(confOf(`client_ca_file = ${tlsFixture('ca.pem')}`))).toEqual([
      'CONF:6: [service] client_ca_file: expected tls_cert_file and tls_key_file with it: without TLS, clients cannot present a certificate',
    ]);
  });

  it('names each file that is not there, at its line', async () => {
    const conf = confOf(
      'tls_cert_file = /nowhere/cert',
      'tls_key_file = /nowhere/key',
      'client_ca_file = /nowhere/ca',
      'tokens_file = /nowhere/tokens',
    );
    expect(await mistakesOf(conf)).toEqual(
      ['tls_cert_file', 'tls_key_file', 'client_ca_file', 'tokens_file'].map((option, index) =>
        expect.stringMatching(
          `^CONF:${6 + index}: \\[service\\] ${option}: expected a file that can be read, got "/nowhere/.*there is no such file`,
        ),
      ),
    );
  });

  it('refuses a key of another certificate, at the line of the certificate', async () => {
    const other = `tls_key_file = ${tlsFixture('other.key')}`;
    expect(await mistakesOf(confOf(other, cert))).toEqual([
      expect.stringMatching(
        /^CONF:7: \[service\] tls_cert_file: .*server\.pem and .*other\.key do not match, or are not PEM.*mismatch/,
      ),
    ]);
  });

  it.for([
    ['an empty one', ''],
    ['a folder', undefined],
  ] as const)('refuses what is no certificate or no key: %s', async ([, content]) => {
    const file = temporaryFile('wrong.pem', content ?? '');
    if (content === undefined) {
      rmSync(file);
      mkdirSync(file);
    }
    for (const [lines, line] of [
      [[`tls_cert_file = ${file}`, key], 6],
      [[cert, `tls_key_file = ${file}`], content === undefined ? 7 : 6],
      [[cert, key, `client_ca_file = ${file}`], 8],
    ] as const) {
      const mistakes = await mistakesOf(confOf(...lines));
      expect(mistakes).toEqual([expect.stringMatching(`^CONF:${line}: \\[service\\] .*${file}`)]);
    }
  });

  it.for<[what: string, content: () => string]>([
    [
      'a certificate and half of one',
      () => readFileSync(tlsFixture('ca.pem'), 'utf8').repeat(2).slice(0, -200),
    ],
    ['a comment that looks like one', () => '# -----BEGIN CERTIFICATE-----\n'],
    ['what only looks like one', () => '-----BEGIN CERTIFICATE-----\nbm9uZQ==\n-----END CERTIFICATE-----\n'],
    [
      'a certificate and a key',
      () => readFileSync(tlsFixture('ca.pem'), 'utf8') + readFileSync(tlsFixture('server.key'), 'utf8'),
    ],
  ])('refuses %s as client_ca_file', async ([, content]) => {
    const file = temporaryFile('ca.pem', content());
    expect(await mistakesOf(confOf(cert, key, `client_ca_file = ${file}`))).toEqual([
      expect.stringMatching(`^CONF:8: \\[service\\] client_ca_file: ${file}`),
    ]);
  });

  it.for([
    ['holds comments only', '# soon\n\n   \n#s3cret\n', 'expected at least one token, got none'],
    [
      'holds two words in a line',
      '# new-0123456789abcdef\ns3cret-0123456789abcdef n3xt-0123456789abcdef\n',
      ':2: expected one token on each line',
    ],
    ['holds a short one', 'fifteen-letters\n', ':1: expected one token on each line'],
  ] as const)(
    'a tokens_file that %s opens the service to nobody: it does not start',
    async ([, content, words]) => {
      const file = temporaryFile('tokens', content);
      for (const more of ['', 'tokens = further-0123456789abcdef']) {
        const mistakes = await mistakesOf(confOf(`tokens_file = ${file}`, more));
        expect(mistakes).toEqual([expect.stringContaining('CONF:6: [service] tokens_file: ')]);
        expect(mistakes[0]).toContain(words);
        expect(mistakes[0]).not.toMatch(/s3cret|naïve|fifteen/);
      }
    },
  );
});

describe('tokens_file', () => {
  it('adds its tokens to those of tokens: one a line, with comments', async () => {
    const file = temporaryFile(
      'tokens',
      '# two\r\n  first-0123456789abcdef  \n\nsecond#not-a-comment-0123456789abcdef\n',
    );
    const { post } = await serve([`tokens_file = ${file}`, 'tokens = third-0123456789abcdef']);
    const right = ['first-0123456789abcdef', 'second#not-a-comment-0123456789abcdef'];
    for (const token of [...right, 'third-0123456789abcdef']) {
      expect(await post('/on-end', FITS, { 'X-Auth-Token': token }), token).toMatchObject({ status: 204 });
    }
    for (const token of ['', '# two', 'second', '#', 'first-0123456789abcdef,third-0123456789abcdef']) {
      expect(await post('/on-end', FITS, { 'X-Auth-Token': token }), token).toMatchObject({ status: 401 });
    }
  });

  it('is read again when it changes: what is new is accepted, what has gone is not', async () => {
    const file = join(temporaryFolder(), 'tokens');
    writeFileSync(file, 'old-0123456789abcdef\n');
    const { statusOf, logger } = await serve([`tokens_file = ${file}`, 'tokens = fixed-0123456789abcdef']);
    writeFileSync(file, 'old-0123456789abcdef\nnew-0123456789abcdef\n');
    await expect.poll(() => statusOf('new-0123456789abcdef')).toBe(204);
    expect(await statusOf('old-0123456789abcdef')).toBe(204);
    writeFileSync(file, 'new-0123456789abcdef\n');
    // After ten, 429.
    await expect.poll(() => statusOf('old-0123456789abcdef')).not.toBe(204);
    expect(await statusOf('new-0123456789abcdef')).toBe(204);
    expect(await statusOf('fixed-0123456789abcdef')).toBe(204);
    expect(JSON.stringify(logger.lines)).not.toMatch(/\bnew\b|\bold\b/);
  });

  it.for([
    ['is empty', (file: string) => writeFileSync(file, '')],
    ['has gone', (file: string) => rmSync(file)],
  ] as const)(
    'that %s all at once leaves the tokens that there were, and opens nothing',
    async ([, change]) => {
      const file = join(temporaryFolder(), 'tokens');
      writeFileSync(file, 's3cret-0123456789abcdef\n');
      const { post, request, logger, service } = await serve([`tokens_file = ${file}`]);
      change(file);
      const reloads = 'blazar_enforcement_credential_reloads_total';
      await expect
        .poll(async () => metric((await request('/metrics')).text, reloads, { outcome: 'refused' }))
        .toBe(1);
      expect(await post('/on-end', FITS)).toMatchObject({ status: 401 });
      expect(await post('/on-end', FITS, { 'X-Auth-Token': 's3cret-0123456789abcdef' })).toMatchObject({
        status: 204,
      });
      expect(logger.lines.filter(({ level }) => level === 'error')).toHaveLength(1);
      // Nor does a reload of the whole open it.
      await expect(service.reload()).resolves.toBe(false);
      expect(await post('/on-end', FITS)).toMatchObject({ status: 401 });
      expect(JSON.stringify(logger.lines)).not.toMatch(/s3cret|n3xt/);
    },
  );

  it('is the one that a reload names: the tokens of the one before no longer count', async () => {
    const before = temporaryFile('tokens', 'old-0123456789abcdef\n');
    const after = temporaryFile('tokens', 'new-0123456789abcdef\n');
    const { statusOf, change } = await serve([`tokens_file = ${before}`]);
    expect(await change(textOf(`tokens_file = ${after}`))).toBe(true);
    expect(await statusOf('old-0123456789abcdef')).toBe(401);
    expect(await statusOf('new-0123456789abcdef')).toBe(204);
    writeFileSync(after, 'newest-0123456789abcdef\n');
    await expect.poll(() => statusOf('newest-0123456789abcdef')).toBe(204);
    // After ten wrong ones, 429.
    expect([401, 429]).toContain(await statusOf('new-0123456789abcdef'));
  });
});
