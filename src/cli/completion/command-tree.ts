/** The commands, options and arguments of the program, for completion scripts and manual pages. */
import type { Argument, Command, Option } from 'commander';

export interface CommandTree {
  /** The names from the first command on; empty for the program. */
  readonly path: readonly string[];
  readonly description: string;
  readonly commands: readonly CommandTree[];
  readonly options: readonly TreeOption[];
  readonly arguments: readonly TreeArgument[];
}

export interface TreeOption {
  /** `-r` and `--filter` */
  readonly flags: readonly string[];
  readonly description: string;
  readonly value?: TreeValue;
}

export interface TreeArgument extends TreeValue {
  readonly description: string;
  readonly isVariadic: boolean;
}

interface TreeValue {
  readonly name: string;
  readonly choices: readonly string[];
  readonly isFile: boolean;
}

const FILES = ['file', 'folder', 'path', 'log'];

export function commandTree(command: Command, path: readonly string[] = []): CommandTree {
  return {
    path,
    description: command.description(),
    commands: command.commands.map((one) => commandTree(one, [...path, one.name()])),
    // Includes -h, which is not among the options of a command.
    options: command.createHelp().visibleOptions(command).map(treeOption),
    arguments: command.registeredArguments.map(treeArgument),
  };
}

/** A command and all its subcommands. */
export function allOf(tree: CommandTree): CommandTree[] {
  return [tree, ...tree.commands.flatMap(allOf)];
}

/** The first sentence without its full stop, to fit on one line. */
export function firstSentence(description: string): string {
  return (description.split(/[.;:] /)[0] ?? '').replace(/\.$/, '');
}

function treeOption(option: Option): TreeOption {
  const { short, long, description, argChoices, required, optional } = option;
  const flags = [short, long].flatMap((flag) => flag ?? []);
  if (!required && !optional) {
    return { flags, description };
  }
  const name = /[<[](.+)[>\]]$/.exec(option.flags)?.[1] ?? '';
  return { flags, description, value: treeValue(name, argChoices) };
}

function treeArgument(argument: Argument): TreeArgument {
  const { description, variadic } = argument;
  return { ...treeValue(argument.name(), argument.argChoices), description, isVariadic: variadic };
}

function treeValue(name: string, choices: readonly string[] = []): TreeValue {
  return { name, choices, isFile: FILES.includes(name) };
}
