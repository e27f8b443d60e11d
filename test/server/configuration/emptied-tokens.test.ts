/** A token that is gone by mistake must never open the service. */
import { describe, expect, it } from 'vitest';
import type { ConfigSources } from '../../../src/index.ts';
import { confFile, temporaryFile } from '../../support/files.ts';
import { createLasting } from '../../support/requests.ts';
import { type RunningPolicyService, runServiceOnFile, startMistakes } from '../../support/running-service.ts';
import { tlsFixture } from '../../support/tls.ts';

const CHAIN = '[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = 60\n';
const text = (...lines: string[]) => `${CHAIN}[service]\nport = 0\n${lines.join('\n')}\n`;
const files = (...lines: string[]): ConfigSources => ({
  environment: {},
  configFiles: [confFile(text(...lines))],
});

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
    expect(await startMistakes(sources())).toContainEqual(
      expect.stringMatching(
        new RegExp(`^\\S.*: \\[service\\] ${option}: expected .*, got nothing, which would let everyone in`),
      ),
    );
  });

  it('is a mistake for SkyPilot too', async () => {
    const [mistake] = await startMistakes({
      environment: {},
      configFiles: [confFile('[skypilot]\ntokens = ,\n')],
    });
    expect(mistake).toMatch(/:2: \[skypilot\] tokens: expected .*, got nothing/);
  });
});

describe('a reload', () => {
  const statusOf = async ({ post }: RunningPolicyService, token?: string) =>
    (await post('/check-create', createLasting(1), token === undefined ? {} : { 'X-Auth-Token': token }))
      .status;

  it.for<[what: string, before: () => string, lines: string[]]>([
    ['empties tokens', () => 'tokens = s3cret-0123456789abcdef', ['tokens =']],
    ['removes tokens', () => 'tokens = s3cret-0123456789abcdef', []],
    [
      'removes tokens_file',
      () => `tokens_file = ${temporaryFile('tokens', 's3cret-0123456789abcdef\n')}`,
      [],
    ],
  ])('that %s is refused, and the token is asked for as before', async ([, before, lines]) => {
    const running = await runServiceOnFile(text(before()));
    expect(await running.change(text(...lines))).toBe(false);
    expect([await statusOf(running), await statusOf(running, 's3cret-0123456789abcdef')]).toEqual([401, 204]);
  });

  it('that cuts off the part with the tokens is refused, and says why', async () => {
    const running = await runServiceOnFile(text('max_queued = 7', 'tokens = s3cret-0123456789abcdef'));
    expect(await running.change(CHAIN)).toBe(false);
    const why = '[service] tokens: the last token is gone, and everyone could ask; restart to accept it';
    expect(running.logger.lines.map(({ message }) => message)).toContain(why);
    const { json } = await running.request('/readyz');
    expect(json).toMatchObject({ problems: ['[service] tokens: not valid'] });
    expect(await statusOf(running)).toBe(401);
  });

  it("that takes away SkyPilot's last token is refused", async () => {
    const policies = '[service]\nport = 0\n[skypilot]\nadmin_policies = AddLabelsPolicy\n';
    const { change, logger } = await runServiceOnFile(`${policies}tokens = s3cret-0123456789abcdef\n`);
    expect(await change(policies)).toBe(false);
    expect(logger.lines.map(({ message }) => message)).toContainEqual(
      expect.stringMatching(/^\[skypilot\] tokens: the last token is gone/),
    );
  });
});
