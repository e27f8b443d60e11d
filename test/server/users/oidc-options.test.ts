import { describe, expect, it } from 'vitest';
import { formatProblem } from '../../../src/base/errors.ts';
import { readConfiguration } from '../../../src/enforcement/configuration.ts';
import { oidcSection } from '../../../src/server/users/oidc-options.ts';
import { confFile } from '../../support/files.ts';

async function mistakesOf(...lines: string[]): Promise<string[]> {
  const conf = confFile(`[oidc]\n${lines.join('\n')}\n`);
  const { problems } = await readConfiguration({ environment: {}, configFiles: [conf] }, [oidcSection]);
  return problems
    .filter(({ section }) => section === 'oidc')
    .map((problem) => formatProblem(problem).replaceAll(conf, 'CONF'));
}

const ISSUER = 'issuer = https://keycloak.example.org/realms/cloud';
const CLIENT = 'client_id = x';
const BOTH = [ISSUER, CLIENT] as const;
const CALLBACK = 'x.example.org/login/oidc/callback';

describe('[oidc]', () => {
  it.for([
    [[ISSUER], 'CONF:2: [oidc] issuer: expected client_id with it'],
    [[CLIENT], 'CONF:2: [oidc] client_id: has no effect without issuer: set it'],
    [
      ['issuer = http://keycloak.example.org', CLIENT],
      'issuer: expected https: over http, anyone on the network path',
    ],
    [['issuer ='], 'CONF:2: [oidc] issuer: '],
    [['issuer = https://u:p4ss@idp.example.org/', CLIENT], 'issuer: expected an address without credentials'],
    [
      [...BOTH, 'redirect_url = https://x.example.org/'],
      'CONF:4: [oidc] redirect_url: expected an address with the path /login/oidc/callback',
    ],
    [
      [...BOTH, `redirect_url = https://${CALLBACK}?a=b`],
      'redirect_url: expected an address without credentials',
    ],
    [
      [...BOTH, `redirect_url = http://${CALLBACK}`],
      'redirect_url: expected https: over http, anyone on the network path',
    ],
    [
      [...BOTH, 'member_values = a,manager'],
      'member_values: expected values that are not in manager_values too, got "manager"',
    ],
    [
      [...BOTH, 'operator_values = a,b', 'reader_values = b'],
      'CONF:5: [oidc] reader_values: expected values that are not in operator_values too, got "b"',
    ],
    [[...BOTH, 'scopes = profile'], 'scopes: expected openid among them'],
    [[...BOTH, 'project_pattern = /p/*'], 'project_pattern: expected {project} in it'],
    [
      [...BOTH, 'project_pattern = /p/{project}{role}'],
      'project_pattern: expected a text between {project} and {role}',
    ],
    [[...BOTH, 'client_secret = a', 'client_secret_file = /dev/null'], 'client_secret_file, got both'],
    [[...BOTH, 'client_secret_file = /dev/null'], 'expected one line with the secret'],
    [[...BOTH, 'cafile = /dev/null'], 'CONF:4: [oidc] cafile: /dev/null holds no certificate in PEM'],
    [[ISSUER, 'client_ids = x'], 'client_id'],
  ] as const)('%j is a mistake', async ([lines, mistake]) => {
    expect((await mistakesOf(...lines)).join('\n')).toContain(mistake);
  });

  it('takes a whole configuration, and http to this machine', async () => {
    const more = ['client_id = x', 'client_secret = a', 'project_ids = climate:c11,physics:p44'];
    expect(await mistakesOf(ISSUER, ...more)).toEqual([]);
    for (const host of ['127.0.0.1:8080', '[::1]:8080', 'localhost:8080']) {
      expect(await mistakesOf(`issuer = http://${host}`, 'client_id = x'), host).toEqual([]);
    }
  });
});
