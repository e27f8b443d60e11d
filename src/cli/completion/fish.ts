/** The completion script for fish. */
import {
  allOf,
  type CommandTree,
  firstSentence,
  type TreeArgument,
  type TreeOption,
} from './command-tree.ts';

export function fishScript(tree: CommandTree): string {
  const commands = allOf(tree);
  const below = commands.filter(({ path }) => path.length > 0);
  const withValue = commands.flatMap(({ options }) => options.filter(({ value }) => value !== undefined));
  const flags = [...new Set(withValue.flatMap((option) => option.flags))];
  return `# Completion of blazar-enforcement in fish, printed by: blazar-enforcement completion fish

# Whether the commands on the command line are these. With a number: whether so many arguments follow them.
function __blazar_enforcement_at
    set -l names ${below.map(({ path }) => quoted(path.join(' '))).join(' ')}
    set -l with_value ${flags.join(' ')}
    set -l tokens (commandline -opc)
    set -l path ''
    set -l arguments 0
    set -l is_value no
    for token in $tokens[2..-1]
        set -l longer (string trim -- "$path $token")
        if test $is_value = yes
            set is_value no
        else if contains -- $token $with_value
            set is_value yes
        else if string match -q -- '-*' $token
            continue
        else if contains -- $longer $names
            set path $longer
        else
            set arguments (math $arguments + 1)
        end
    end
    test "$path" = "$argv[1]"; and begin
        test (count $argv) -lt 2
        or test $arguments -eq $argv[2]
        or test $arguments -gt $argv[2] -a (count $argv) -eq 3
    end
end

complete -c blazar-enforcement -f
${commands.flatMap(linesOf).join('\n')}
`;
}

function linesOf({ path, commands, options, arguments: args }: CommandTree): string[] {
  const at = (more = '') => quoted(`__blazar_enforcement_at "${path.join(' ')}"${more}`);
  const begin = (more?: string) => `complete -c blazar-enforcement -n ${at(more)}`;
  return [
    ...commands.map(
      (one) => `${begin()} -a ${quoted(one.path.at(-1) ?? '')} -d ${quoted(firstSentence(one.description))}`,
    ),
    ...args.map((argument, index) => `${begin(argumentPlace(argument, index))} ${values(argument)}`),
    ...options.map((option) => `${begin()} ${optionText(option)}`),
  ];
}

/** The number of arguments before it; `more` = or more. */
function argumentPlace({ isVariadic }: TreeArgument, index: number): string {
  return ` ${index}${isVariadic ? ' more' : ''}`;
}

function optionText({ flags, description, value }: TreeOption): string {
  const names = flags.map((flag) => (flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`));
  const required = value === undefined ? [] : ['-r', values(value)];
  return [...names, ...required, '-d', quoted(firstSentence(description))].join(' ');
}

function values({ choices, isFile }: { choices: readonly string[]; isFile: boolean }): string {
  return isFile ? '-F' : `-f -a ${quoted(choices.join(' '))}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll(/[\\']/g, '\\$&')}'`;
}
