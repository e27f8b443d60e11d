/** `[kubernetes]`, as `config validate` looks at it. */
import { describe, expect, it } from 'vitest';
import { readConfiguration } from '../../src/enforcement/configuration.ts';
import { kubernetesSection } from '../../src/kubernetes/options.ts';
import { configFile, shown } from '../config/helpers.ts';
import { folderOf } from '../support/filter-folder.ts';
import { policies, policiesForAll } from '../support/kubernetes-service.ts';

const FREE = { allowed: { schedulerNames: [] } };

/** The mistakes of the section with these lines, of which the first is in line 2; `{}` = a folder with these files. */
async function problems(lines: readonly string[], files: Readonly<Record<string, string>> = {}) {
  const folder = folderOf(files);
  const text = ['[kubernetes]', ...lines].join('\n').replaceAll('{}', folder);
  const sources = { configFiles: [configFile(text)], environment: {} };
  const { problems: found, namedFiles } = await readConfiguration(sources, [kubernetesSection]);
  const own = found.filter(({ section }) => section !== 'enforcement');
  return {
    errors: shown(own, 'error').map((one) => one.replaceAll(folder, '')),
    warnings: shown(own, 'warning'),
    namedFiles: namedFiles.map((path) => path.replaceAll(folder, '')),
  };
}

const errorsOf = async (...args: Parameters<typeof problems>) => (await problems(...args)).errors;
const GOOD = { 'a.yaml': policiesForAll({ disks: FREE, zones: FREE }) };

describe('the section', () => {
  it('reports an invalid value with its position', async () => {
    expect(await errorsOf(['merge_strategy = deepest'])).toEqual([
      expect.stringMatching(/^blazar\.conf:2: \[kubernetes\] merge_strategy: .*deep.*"deepest"/),
    ]);
    expect(await errorsOf(['scheduling_policy = /etc'])).toEqual([
      expect.stringMatching(/^blazar\.conf:2: \[kubernetes\] scheduling_policy: .*"scheduling_policies"/),
    ]);
  });

  it.each(['a', 'a:Sometimes', ':NoSchedule', 'a:NoSchedule:soon', 'a b:NoSchedule', 'a=b=c:NoSchedule'])(
    'takes no system toleration that is written as %s',
    async (written) => {
      expect(await errorsOf([`system_tolerations = ${written}`])).toEqual([
        expect.stringMatching(
          /^blazar\.conf:2: \[kubernetes\] system_tolerations: expected a comma-separated list of key:effect/,
        ),
      ]);
    },
  );
});

it.each([
  [
    ['source = cluster', 'scheduling_policies = {}'],
    /scheduling_policies: expected nothing, since source = cluster/,
  ],
  [['kubeconfig = {}/a.yaml'], /kubeconfig: expected nothing, unless source = cluster/],
  [['installed_webhooks = {}'], /installed_webhooks: expected nothing, unless source = cluster/],
])('an option of the other source is refused: %j', async (lines, message) => {
  expect(await errorsOf(lines, GOOD)).toEqual([expect.stringMatching(message)]);
});

it('installed webhooks are read, and their errors reported with file and line', async () => {
  const [first] = await errorsOf(['source = cluster', 'installed_webhooks = {}'], GOOD);
  expect(first).toMatch(/a\.yaml:\d+: kind: .*MutatingWebhookConfiguration/);
});

it('the policies that it names are read, and their errors reported with file and line', async () => {
  const files = {
    'a.yaml': policies({ disks: FREE }),
    'b.yaml': 'kind: SchedulingPolicy\nmetadata: {name: b}\nspec:\n  allowed:\n    colour: red\n',
    'c.yml': 'kind: [\n',
  };
  const { errors } = await problems(['# none', 'scheduling_policies = {}'], files);
  expect(errors.sort()).toEqual([
    expect.stringMatching(/^b\.yaml:5: spec\.allowed\.colour: /),
    expect.stringMatching(/^c\.yml:\d+: /),
  ]);
});

describe('audit', () => {
  const lines = (audit: string) => ['scheduling_policies = {}', `audit = ${audit}`];

  it('names existing policies, or all', async () => {
    for (const audit of ['disks', 'disks, zones', '*', '*, disks', '']) {
      expect(await errorsOf(lines(audit), GOOD), audit).toEqual([]);
    }
  });

  it('with an unknown name is an error, with the nearest name', async () => {
    expect(await errorsOf(lines('disk, zones, elsewhere'), GOOD)).toEqual([
      expect.stringMatching(
        /^blazar\.conf:3: \[kubernetes\] audit: there is no scheduling policy "disk".*"disks"/,
      ),
      expect.stringMatching(
        /^blazar\.conf:3: \[kubernetes\] audit: there is no scheduling policy "elsewhere"/,
      ),
    ]);
  });
});
