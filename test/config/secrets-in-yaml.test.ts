/** A secret in a YAML file or behind --config is in no problem, whatever is wrong around it. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readConfiguration } from '../../src/enforcement/configuration.ts';
import { formatProblem } from '../../src/errors.ts';
import { SECTIONS } from '../../src/server/sections.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { runCommand } from '../support/run-command.ts';
import { configFile } from './helpers.ts';

async function problems(text: string, config: readonly string[] = []): Promise<string[]> {
  const sources = { configFiles: [configFile(text, 'x.yaml')], environment: {}, config };
  const { problems: found } = await readConfiguration(sources, SECTIONS);
  return found.map(formatProblem);
}

describe('in a YAML file', () => {
  it.each([
    ['in a wrong token', 'enforcement: {external_service_token: "sEcReT\\n"}'],
    ['in a list where a text is wanted', 'enforcement: {external_service_token: [sEcReT]}'],
    ['in a mapping where a text is wanted', 'enforcement: {external_service_token: {sEcReT: sEcReT}}'],
    ['in a list with an item that is wrong', 'service: {tokens: [sEcReT, "sEcReT ü"]}'],
    ['in a mapping where a list is wanted', 'service:\n  tokens:\n    sEcReT: sEcReT\n'],
    ['in a token of SkyPilot', 'skypilot: {tokens: ["sEcReT,"]}'],
    ['behind "$"', 'enforcement: {external_service_token: a$sEcReT}'],
    [
      'over "$" in a list',
      'enforcement: {external_service_token: sEcReT, enabled_filters: [$external_service_token]}',
    ],
    [
      'over "$" in a mapping',
      'enforcement: {external_service_token: sEcReT, max_lease_duration_user_limits: {a: $external_service_token}}',
    ],
    ['as the password of a URL', 'enforcement: {external_service_base_endpoint: "http://u:sEcReT@h/"}'],
    ['as a password in a list', 'enforcement: {max_lease_duration: ["http://u:sEcReT@h/"]}'],
    [
      'as a password beyond what is shown',
      `enforcement: {max_lease_duration: ["http://${'u'.repeat(100)}:sEcReT${'x'.repeat(100)}@h/"]}`,
    ],
    ['in a section that is none', 'enforcement: external_service_token=sEcReT'],
    ['where a space is missing', 'enforcement: {external_service_token:sEcReT, max_lease_duration: 5}'],
    ['where "=" stands for a colon', 'enforcement: {external_service_token=sEcReT: , "tokens = sEcReT": 1}'],
    ['on an indented line', 'enforcement:\n  max_lease_duration: 60\n    external_service_token=sEcReT\n'],
    [
      'on an indented line in a list',
      'enforcement:\n  enabled_filters:\n    - X\n      external_service_token = sEcReT\n',
    ],
    ['on an indented line of the service', 'service:\n  port: 60\n    tokens = sEcReT\n'],
    ['in what is no YAML', 'enforcement:\n  external_service_token: "sEcReT\n'],
    ['in an unknown escape', 'enforcement:\n  external_service_token: "\\sEcReT"\n'],
    ['as an alias', 'enforcement:\n  external_service_token: *sEcReT\n'],
    ['as a tag', 'enforcement:\n  external_service_token: !sEcReT x\n'],
    ['twice', 'enforcement:\n  external_service_token: sEcReT\n  external_service_token: sEcReT\n'],
  ])('%s', async (_, text) => {
    const found = await problems(text);
    expect(found.filter((problem) => !problem.includes('no filter is enforced'))).not.toEqual([]);
    expect(found.join('\n')).not.toContain('sEcReT');
  });
});

describe('behind --config', () => {
  it.each([
    'enforcement.external_service_token=[sEcReT]',
    'enforcement.external_service_token={sEcReT: sEcReT}',
    'enforcement.external_service_token=[sEcReT',
    'enforcement.external_service_token=@sEcReT',
    'enforcement.external_service_token=*sEcReT',
    'enforcement.external_service_token="sEcReT',
    'enforcement.external_service_token=!sEcReT x',
    'enforcement.external_service_token:sEcReT=b64',
    'enforcement.external_service_token sEcReT',
    'external_service_token=sEcReT',
    'enforcement.external_service_tokn=sEcReT',
    'service.tokens=[sEcReT, "sEcReT ü"]',
    'service.tokens="sEcReT,,sEcReT"',
    'service.tokens.a=sEcReT',
  ])('%s', async (pair) => {
    const found = await problems('enforcement: {enabled_filters: [MaxLeaseDurationFilter]}', [pair]);
    expect(found).not.toEqual([]);
    expect(found.join('\n')).not.toContain('sEcReT');
  });
});

it('random characters around it do not bring it out', async () => {
  const secret = fc.string({ unit: fc.constantFrom(...'QXZJVKWqxzjvkw'), minLength: 8, maxLength: 40 });
  const around = fc.constantFrom(
    ...[
      '',
      ' ',
      '"',
      "'",
      '$',
      '{',
      '}',
      '[',
      ']',
      ',',
      ' #',
      '&',
      '*',
      '!',
      '|',
      '>',
      '%',
      '@',
      '`',
      '\n    ',
      'é',
      '\u0000',
    ],
  );
  const option = fc.constantFrom(
    'external_service_token',
    'external_service_bearer_token',
    'external_service_tokn',
  );
  const above = fc.constantFrom(
    ...[
      'max_lease_duration: 60',
      'enabled_filters: [NoSuchFilter]',
      'enabled_filters:\n    - A',
      'exempt_projects:',
      'broken',
      '- x',
    ],
  );
  const folder = temporaryFolder();
  let found = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.record({ secret, option, above, before: around, after: around, wrong: fc.boolean() }),
      async ({ secret: value, option: name, above: line, before, after, wrong }) => {
        const written = `enforcement:\n  ${line}\n  ${name}: ${before}${value}${after}\n`;
        const indented = `enforcement:\n  ${line}\n      ${name} = ${before}${value}${after}\n`;
        const file = configFile(wrong ? indented : written, 'x.yaml', folder);
        const config = [`enforcement.${name}=${before}${value}${after}`];
        const sources = { configFiles: [file], environment: {}, config };
        const { problems: all } = await readConfiguration(sources, SECTIONS);
        found += all.length;
        expect(all.map(formatProblem).join('\n')).not.toContain(value);
      },
    ),
    { numRuns: 150 },
  );
  expect(found).toBeGreaterThan(150);
});

it('config show prints none, of YAML and of --config, with origins or without', async () => {
  const file = configFile(
    'enforcement:\n  enabled_filters: [MaxLeaseDurationFilter]\n  external_service_token: sEcReT1\nservice:\n  tokens: [sEcReT2, sEcReT3]\n',
    'x.yaml',
  );
  const args = ['--config-file', file, '--config', 'enforcement.external_service_bearer_token=sEcReT4'];
  const shown = await Promise.all(
    ['table', 'json'].map((format) =>
      runCommand(['config', 'show', '--origin', '--format', format, ...args]),
    ),
  );
  for (const { code, stdout, stderr } of shown) {
    expect(code).toBe(0);
    expect(stdout).toContain('****');
    expect(stdout).toContain('x.yaml:3');
    expect(stdout + stderr).not.toContain('sEcReT');
  }
});
