/** `skypilot init`: writes a policy package to start from. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import { packageVersion } from '../../base/version.ts';
import { systemErrorText } from '../../config/read-file.ts';
import { onOneLine, UsageError } from '../output.ts';

const MAX_NAME = 60;

export function skypilotInitCommand(): Command {
  return new Command('init')
    .description(
      'Write a policy package: a policy in JavaScript with its types, cases that it passes, and a blazar.conf to try it. Overwrites nothing. Exit code: 0 written, 2 a file is there already, cannot be written, or an error in the command.',
    )
    .argument('[folder]', 'Where to. Default: the current folder.', '.')
    .addOption(
      new Option('--name <class>', 'The class of the policy.').argParser(className).default('MaxGpusPolicy'),
    )
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
  const { packageFiles } = await import('./init-files.ts');
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
