/** `completion`: prints a shell completion script. */
import { Argument, Command } from 'commander';
import type { CommandTree } from './command-tree.ts';

const SHELLS: Readonly<Record<string, () => Promise<(tree: CommandTree) => string>>> = {
  bash: async () => (await import('./bash.ts')).bashScript,
  zsh: async () => (await import('./zsh.ts')).zshScript,
  fish: async () => (await import('./fish.ts')).fishScript,
};

const MORE_HELP = `
The script is made from the commands of this version. Load it where your shell starts:

  bash   source <(blazar-enforcement completion bash)               in ~/.bashrc
  zsh    source <(blazar-enforcement completion zsh)                in ~/.zshrc, after compinit
  fish   blazar-enforcement completion fish | source                in ~/.config/fish/config.fish`;

/** `createProgram`: creates the program with all its commands. */
export function completionCommand(createProgram: () => Promise<Command>): Command {
  return new Command('completion')
    .description('Print a script that completes commands, options and their values in a shell.')
    .addArgument(new Argument('<shell>', 'The shell.').choices(Object.keys(SHELLS)))
    .addHelpText('after', MORE_HELP)
    .action(async (shell: string) => {
      const { commandTree } = await import('./command-tree.ts');
      const script = await SHELLS[shell]?.();
      process.stdout.write(script?.(commandTree(await createProgram())) ?? '');
    });
}
