/** A token that is gone by mistake must never open the service. */
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { formatProblem } from '../../../src/base/errors.ts';
import { readConfiguration } from '../../../src/enforcement/configuration.ts';
import type { ConfigSources } from '../../../src/index.ts';
import { SECTIONS } from '../../../src/server/configuration/sections.ts';
import { startService } from '../../../src/server/service.ts';
import { confFile, temporaryFile } from '../../support/files.ts';
import { recordingLogger } from '../../support/logger.ts';
import { createLasting } from '../../support/requests.ts';
import { runServiceOn } from '../../support/running-service.ts';
import { tlsFixture } from '../../support/tls.ts';

const CHAIN = '[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = 60\n';
const conf = (...lines: string[]) => confFile(`${CHAIN}[service]\nport = 0\n${lines.join('\n')}\n`);
const files = (...lines: string[]): ConfigSources => ({ environment: {}, configFiles: [conf(...lines)] });

/** What `config validate` says, and `serve` refuses to start with. */
async function mistakes(sources: ConfigSources): Promise<string[]> {
  const { problems } = await readConfiguration(sources, SECTIONS);
  const found = problems.filter(({ severity }) => severity === 'error').map(formatProblem);
  await expect(startService(sources, { logger: recordingLogger() })).rejects.toThrow(found.join('\n'));
  return found;
}

const tls = [`tls_cert_file = ${tlsFixture('server.pem')}`, `tls_key_file = ${tlsFixture('server.key')}`];

describe('an option for authentication that is set but empty', () => {
  it.for<[name: string, option: string, sources: () => ConfigSources]>([
    ['nothing', 'tokens', () => files('tokens =')],
    ['commas', 'tokens', () => files('tokens = ,,,')],
    ['what another option leaves', 'tokens', () => files('tokens = $tokens_of_ours', 'tokens_of_ours =')],
    [
      'a variable',
      'tokens',
      () => ({ ...files('tokens = a-0123456789abcdef'), environment: { OS_SERVICE__TOKENS: '' } }),
    ],
    ['a flag', 'tokens', () => ({ ...files('tokens = a-0123456789abcdef'), config: ["service.tokens=''"] })],
    [
      'a list from code',
      'tokens',
      () => ({ ...files('tokens = a-0123456789abcdef'), values: { service: { tokens: [] } } }),
    ],
    ['no file', 'tokens_file', () => files('tokens_file =')],
    ['no authorities', 'client_ca_file', () => files(...tls, 'client_ca_file =')],
    ['no certificate', 'tls_cert_file', () => files('tls_cert_file =', 'tls_key_file =')],
  ])('is a mistake: %s', async ([, option, sources]) => {
    expect(await mistakes(sources())).toContainEqual(
      expect.stringMatching(
        new RegExp(`^\\S.*: \\[service\\] ${option}: expected .*, got nothing, which would let everyone in`),
      ),
    );
  });

  it('is a mistake for SkyPilot too', async () => {
    const [mistake] = await mistakes({
      environment: {},
      configFiles: [confFile('[skypilot]\ntokens = ,\n')],
    });
    expect(mistake).toMatch(/:2: \[skypilot\] tokens: expected .*, got nothing/);
  });
});

describe('a reload', () => {
  it.for([
    ['empties tokens', 'tokens ='],
    ['removes tokens', ''],
  ])('that %s is refused, and the token is asked for as before', async ([, line = '']) => {
    const file = conf('tokens = s3cret-0123456789abcdef');
    const { service, post } = await runServiceOn({ environment: {}, configFiles: [file] });
    writeFileSync(file, readFileSync(file, 'utf8').replace('tokens = s3cret-0123456789abcdef', line));
    expect(await service.reload()).toBe(false);
    expect((await post('/check-create', createLasting(1))).status).toBe(401);
    expect(
      (await post('/check-create', createLasting(1), { 'X-Auth-Token': 's3cret-0123456789abcdef' })).status,
    ).toBe(204);
  });

  it('that cuts off the part with the tokens is refused, and says why', async () => {
    const file = conf('max_queued = 7', 'tokens = s3cret-0123456789abcdef');
    const { service, post, logger, request } = await runServiceOn({ environment: {}, configFiles: [file] });
    writeFileSync(file, CHAIN);
    expect(await service.reload()).toBe(false);
    const why = '[service] tokens: the last token is gone, and everyone could ask; restart to accept it';
    expect(logger.lines.map(({ message }) => message)).toContain(why);
    expect((await request('/readyz')).json).toMatchObject({ problems: ['[service] tokens: not valid'] });
    expect((await post('/check-create', createLasting(1))).status).toBe(401);
  });

  it('that takes away tokens_file, or empties what it names, is refused', async () => {
    const tokens = temporaryFile('tokens', 's3cret-0123456789abcdef\n');
    const file = conf(`tokens_file = ${tokens}`);
    const { service, post } = await runServiceOn({ environment: {}, configFiles: [file] }, { pollMs: 10 });
    const status = async () => (await post('/check-create', createLasting(1))).status;
    writeFileSync(tokens, '');
    expect(await service.reload()).toBe(false);
    expect(await status()).toBe(401);
    writeFileSync(tokens, 's3cret-0123456789abcdef\n');
    writeFileSync(file, readFileSync(file, 'utf8').replace(/tokens_file.*/, ''));
    expect(await service.reload()).toBe(false);
    expect(await status()).toBe(401);
  });

  it('may move the tokens to a file, and replace them', async () => {
    const file = conf('tokens = first-0123456789abcdef');
    const { service, post } = await runServiceOn({ environment: {}, configFiles: [file] });
    const tokens = temporaryFile('tokens', 'second-0123456789abcdef\n');
    writeFileSync(
      file,
      readFileSync(file, 'utf8').replace('tokens = first-0123456789abcdef', `tokens_file = ${tokens}`),
    );
    expect(await service.reload()).toBe(true);
    const status = async (token: string) =>
      (await post('/check-create', createLasting(1), { 'X-Auth-Token': token })).status;
    expect([await status('first-0123456789abcdef'), await status('second-0123456789abcdef')]).toEqual([
      401, 204,
    ]);
  });

  it("that takes away SkyPilot's last token is refused", async () => {
    const policies = '[skypilot]\nadmin_policies = AddLabelsPolicy\n';
    const file = confFile(`[service]\nport = 0\n${policies}tokens = s3cret-0123456789abcdef\n`);
    const { service, logger } = await runServiceOn({ environment: {}, configFiles: [file] });
    writeFileSync(file, `[service]\nport = 0\n${policies}`);
    expect(await service.reload()).toBe(false);
    expect(logger.lines.map(({ message }) => message)).toContainEqual(
      expect.stringMatching(/^\[skypilot\] tokens: the last token is gone/),
    );
  });
});

it.for(['enabled_filters =', 'enabled_filters = , ,'])(
  'that nothing is enforced is said as loudly: %s',
  async (line) => {
    const { problems } = await readConfiguration({
      environment: {},
      configFiles: [confFile(`[enforcement]\n${line}\n`)],
    });
    const [problem] = problems.map(formatProblem);
    expect(problem).toMatch(/:2: \[enforcement\] enabled_filters: (no filter is enforced|expected)/);
  },
);
