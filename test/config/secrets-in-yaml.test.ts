/** No problem shows a secret of a YAML file or of --config, whatever is wrong around it. */
import { expect, it } from 'vitest';
import { formatProblem } from '../../src/base/errors.ts';
import { readConfiguration } from '../../src/enforcement/configuration.ts';
import { SECTIONS } from '../../src/server/configuration/sections.ts';
import { rows } from '../support/rows.ts';
import { configFile } from './helpers.ts';

async function problems(text: string, config: readonly string[] = []): Promise<string[]> {
  const sources = { configFiles: [configFile(text, 'x.yaml')], environment: {}, config };
  const { problems: found } = await readConfiguration(sources, SECTIONS);
  return found.map(formatProblem);
}

it.each<string[]>([
  ...rows`
      in a list instead of a text → enforcement: {external_service_token: [sEcReT]}
      in a mapping instead of a text → enforcement: {external_service_token: {sEcReT: sEcReT}}
      in a list with a wrong item → service: {tokens: [sEcReT, "sEcReT ü"]}
      in a mapping instead of a list → service:\n  tokens:\n    sEcReT: sEcReT\n
      in a token of SkyPilot → skypilot: {tokens: ["sEcReT,"]}
      after "$" → enforcement: {external_service_token: a$sEcReT}
      through "$" in a list → enforcement: {external_service_token: sEcReT, enabled_filters: [$external_service_token]}
      through "$" in a mapping → enforcement: {external_service_token: sEcReT, max_lease_duration_user_limits: {a: $external_service_token}}
      as the password of a URL → enforcement: {external_service_base_endpoint: "http://u:sEcReT@h/"}
      as a password in a list → enforcement: {max_lease_duration: ["http://u:sEcReT@h/"]}
      as a password in a text that is shortened → enforcement: {max_lease_duration: ["http://uuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu:sEcReTxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx@h/"]}
      in a section that is a text → enforcement: external_service_token=sEcReT
      with a missing space → enforcement: {external_service_token:sEcReT, max_lease_duration: 5}
      with "=" instead of a colon → enforcement: {external_service_token=sEcReT: , "tokens = sEcReT": 1}
      on an indented line → enforcement:\n  max_lease_duration: 60\n    external_service_token=sEcReT\n
      on an indented line in a list → enforcement:\n  enabled_filters:\n    - X\n      external_service_token = sEcReT\n
      on an indented line of the service → service:\n  port: 60\n    tokens = sEcReT\n
      in invalid YAML → enforcement:\n  external_service_token: "sEcReT\n
      in an unknown escape → enforcement:\n  external_service_token: "\sEcReT"\n
      as an alias → enforcement:\n  external_service_token: *sEcReT\n
      as a tag → enforcement:\n  external_service_token: !sEcReT x\n
      twice → enforcement:\n  external_service_token: sEcReT\n  external_service_token: sEcReT\n
    `,
  ['in a wrong token', 'enforcement: {external_service_token: "sEcReT\\n"}'],
])('no problem shows a secret of a YAML file %s', async (_, text) => {
  const found = await problems(text);
  expect(found.filter((problem) => !problem.includes('no filter is enforced'))).not.toEqual([]);
  expect(found.join('\n')).not.toContain('sEcReT');
});

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
])('no problem shows a secret of --config %s', async (pair) => {
  const found = await problems('enforcement: {enabled_filters: [MaxLeaseDurationFilter]}', [pair]);
  expect(found).not.toEqual([]);
  expect(found.join('\n')).not.toContain('sEcReT');
});
