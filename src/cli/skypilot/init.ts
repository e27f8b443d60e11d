/** `skypilot init`: writes a starter policy package. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import { packageVersion } from '../../base/version.ts';
import { systemErrorText } from '../../config/read-file.ts';
import { classFileName, optionPrefix } from '../../plugin/class-names.ts';
import { onOneLine, UsageError } from '../common/output.ts';

const MAX_NAME = 60;

export function skypilotInitCommand(): Command {
  return new Command('init')
    .description(
      'Write a policy package: a policy in JavaScript with its types, cases that it passes, and a blazar.conf to try it. Overwrites nothing. Exit code: 0 written, 2 a file is there already, cannot be written, or an error in the command.',
    )
    .argument('[folder]', 'The folder to write to. Default: the current folder.', '.')
    .option('--name <class>', 'The class of the policy.', className, 'MaxGpusPolicy')
    .addHelpText(
      'after',
      `
Examples:
  blazar-enforcement skypilot init my-policy
  blazar-enforcement skypilot init policies/weekend --name WeekendPolicy
  cd my-policy && npm test`,
    )
    .action(init);
}

async function init(folder: string, { name }: { readonly name: string }): Promise<void> {
  const files = Object.entries(packageFiles(name, packageVersion()));
  const there = files.map(([path]) => join(folder, path)).filter((path) => existsSync(path));
  if (there.length > 0) {
    throw new UsageError(`nothing was written, because there is already: ${there.join(', ')}`);
  }
  for (const [path, text] of files) {
    const file = join(folder, path);
    try {
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text, { flag: 'wx' });
    } catch (thrown) {
      throw new UsageError(`${file}: could not be written: ${systemErrorText(thrown)}`);
    }
    process.stdout.write(`${onOneLine(file)}\n`);
  }
}

function className(text: string): string {
  if (
    !/^(?:[A-Z][A-Za-z0-9]*)?[A-Za-z0-9]Policy$/.test(text) ||
    !/^[A-Z]/.test(text) ||
    text.length > MAX_NAME
  ) {
    throw new InvalidArgumentError('expected the name of a class that ends in Policy, such as MaxGpusPolicy');
  }
  return text;
}

/** Content by path in the package. `name`: the class of the policy, such as `MaxGpusPolicy`. */
function packageFiles(name: string, version: string): Readonly<Record<string, string>> {
  const file = classFileName(name);
  const options = optionPrefix(name);
  const manifest = {
    name: file,
    version: '0.1.0',
    private: true,
    type: 'module',
    exports: `./${file}.js`,
    scripts: { test: 'blazar-enforcement skypilot test cases --config-file blazar.conf' },
    // Optional, so that npm does not install a second copy of the runtime.
    peerDependencies: { 'blazar-enforcement': `>=${version}`, zod: '>=4' },
    peerDependenciesMeta: { 'blazar-enforcement': { optional: true }, zod: { optional: true } },
  };
  const { name: _, version: __, private: ___, type, exports, scripts, ...root } = manifest;
  const lock = {
    name: manifest.name,
    version: manifest.version,
    lockfileVersion: 3,
    requires: true,
    packages: { '': { name: manifest.name, version: manifest.version, ...root } },
  };
  return {
    'package.json': json(manifest),
    'package-lock.json': json(lock),
    [`${file}.js`]: policy(name, options),
    'blazar.conf': configuration(name, file, options),
    'cases/labelled.yaml': LABELLED,
    'cases/few-accelerators.yaml': FEW,
    'cases/too-many-accelerators.yaml': TOO_MANY,
    'README.md': readme(name, file, options),
  };
}

const json = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`;

const policy = (name: string, options: string) => `import {
  AdminPolicy,
  acceleratorsOf,
  changeResources,
  MutatedUserRequest,
  PolicyRejected,
  resourcesOf,
} from 'blazar-enforcement/skypilot';
import { z } from 'zod';

const options = z.object({
  ${options}_limit: z.int().min(0).default(8).meta({
    description: 'How many accelerators each node may ask for.',
  }),
  ${options}_team: z.string().min(1).default('unknown').meta({
    description: 'The label team of requests that have none.',
  }),
});

/**
 * Limits accelerators, and labels what is launched. SkyPilot calls policies several times for one command, each time with
 * the previous result: a policy must not change its own result again.
 *
 * @extends {AdminPolicy<z.infer<typeof options>>}
 */
export class ${name} extends AdminPolicy {
  static options = options;

  /**
   * @override
   * @param {import('blazar-enforcement/skypilot').UserRequest} request a copy, which may be changed in place
   */
  validateAndMutate({ task, skypilotConfig }) {
    const { ${options}_limit: limit, ${options}_team: team } = this.options;
    // Every alternative counts: SkyPilot may choose any of them.
    for (const resources of resourcesOf(task)) {
      for (const { name, count } of acceleratorsOf(resources)) {
        if (count > limit) {
          throw new PolicyRejected(\`\${count} \${name} are asked for; \${limit} are allowed.\`);
        }
      }
    }
    changeResources(task, ({ labels }) => {
      const own = /** @type {Record<string, unknown>} */ (labels ?? {});
      return own.team === undefined ? { labels: { ...own, team } } : {};
    });
    return new MutatedUserRequest(task, skypilotConfig);
  }
}
`;

const configuration = (
  name: string,
  file: string,
  options: string,
) => `# skypilot test looks for the policy beside this file, a service in the folder in which it is started.
[skypilot]
admin_policies = ./${file}.js#${name}
${options}_limit = 4
${options}_team = unknown
`;

const FEW = `name: As many accelerators as are allowed
task:
  resources:
    accelerators: H100:4
    labels: { team: physics }
  run: python train.py
expect: unchanged
`;

const TOO_MANY = `name: Too many accelerators in one of two alternatives
task:
  resources:
    any_of:
      - { infra: aws, accelerators: H100:4 }
      - { infra: kubernetes, accelerators: H100:8 }
  run: python train.py
expect:
  rejected: 8 H100 are asked for
`;

const LABELLED = `name: What has no team gets a label
task:
  run: python train.py
request:
  user: 0a1b2c3d:alice
expect:
  task_paths:
    resources.labels.team: unknown
`;

const readme = (name: string, file: string, options: string) => `# ${name}

An admin policy for SkyPilot, run by blazar-enforcement. \`${file}.js\` is the policy, \`cases\` is what it should answer.

- \`npm test\` runs the cases. blazar-enforcement must be installed in this folder, in one above it, or globally.
- \`blazar-enforcement skypilot review TASK.yaml --config-file blazar.conf\` shows what it makes of a task.
- \`blazar-enforcement serve\` runs it: name it in the \`[skypilot] admin_policies\` of the service, as \`blazar.conf\` does.
- Options: \`${options}_limit\`, \`${options}_team\`.
`;
