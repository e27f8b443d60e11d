/** An option whose value is a URL: whatever is wrong with it, a key in it is not repeated. */
import { describe, expect, it, vi } from 'vitest';
import { knownOptions } from '../../src/cli/known-options.ts';
import type { Option } from '../../src/config/option.ts';
import { runProgramInProcess } from '../support/command-in-process.ts';
import { confFile } from '../support/files.ts';

// The first call compiles every policy, which may take longer on a busy machine than loading waits for.
const { options } = await vi.waitFor(() => knownOptions(), { timeout: 120_000 });
const urls = options.filter(({ url, secret }) => url || secret);
const id = ({ section, name }: Option) => `[${section}] ${name}`;

const KEYS = /PATHKEY|QUERYKEY|USERKEY/;
const MISTYPED = [
  'https//host.example/PATHKEY?key=QUERYKEY',
  'htps://host.example/PATHKEY?key=QUERYKEY',
  'https:/USERKEY:pass@/PATHKEY?key=QUERYKEY',
  'host.example/PATHKEY?key=QUERYKEY # of the service',
  'https://host.example:port/PATHKEY?key=QUERYKEY',
  `https://host.example/PATHKEY?key=$QUERYKEY`,
];

it('every option that expects a URL is marked as one, or is a secret', () => {
  const expecting = options.filter(({ expected }) => /URL|:\/\//.test(expected));
  expect(expecting.length).toBeGreaterThan(10);
  expect(expecting.filter((option) => !urls.includes(option)).map(id)).toEqual([]);
});

describe.each(options.filter(({ url }) => url).map((option) => [id(option), option] as const))(
  'a mistyped URL in %s',
  (name, { section, name: option }) => {
    it('is reported without its value', async () => {
      for (const value of MISTYPED) {
        const conf = confFile(
          `[skypilot]\nadmin_policies = DynamicKubernetesContextsUpdatePolicy,EnforceAutostopPolicy\n[enforcement]\nenabled_filters = ExternalServiceFilter\n[${section}]\n${option} = ${value}\n`,
        );
        const { code, stdout, stderr } = await runProgramInProcess([
          'config',
          'validate',
          '--config-file',
          conf,
        ]);
        expect(code, value).toBe(2);
        expect(stderr, value).toContain(`:6: ${name}: `);
        expect(stdout + stderr, value).not.toMatch(KEYS);
      }
    });
  },
);

it('a right URL is shown without its query', async () => {
  const conf = confFile(
    '[enforcement]\nenabled_filters = ExternalServiceFilter\nexternal_service_base_endpoint = https://host.example/path?key=QUERYKEY\n',
  );
  for (const format of ['table', 'ini', 'json']) {
    const { stdout } = await runProgramInProcess([
      ...['config', 'show', '--format', format, '--config-file', conf],
    ]);
    expect(stdout).toContain('https://host.example/path?****');
    expect(stdout).not.toMatch(KEYS);
  }
  const shown = await runProgramInProcess(['config', 'show', '--show-secrets', '--config-file', conf]);
  expect(shown.stdout).toContain('key=QUERYKEY');
});
