/** The completion script for bash 3.2 and later. It does not need the package bash-completion. */
import { allOf, type CommandTree } from './command-tree.ts';

/** Instead of choices: complete file names. */
const FILES = '@files';

export function bashScript(tree: CommandTree): string {
  const commands = allOf(tree);
  return `# Completion of blazar-enforcement in bash, printed by: blazar-enforcement completion bash

# Sets what may follow a command: its commands, its options, those that take a value, and the values of its arguments.
_blazar_enforcement_command() {
  commands='' options='' with_value='' arguments=() variadic=''
  case "$1" in
${commands.map(commandCase).join('\n')}
  esac
}

# Prints the values of an option of a command.
_blazar_enforcement_values() {
  case "$1" in
${valueCases(commands)}
  esac
}

_blazar_enforcement() {
  local current=\${COMP_WORDS[COMP_CWORD]} path='' option='' position=0 prefix='' values='' word i
  local commands options with_value arguments variadic
  COMPREPLY=()
  _blazar_enforcement_command ''
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    # "--format=json" is three words where "=" separates words, as it does by default.
    if [[ $word == '=' ]]; then
      continue
    elif [[ -n $option ]]; then
      option=''
    elif [[ $word == -* ]]; then
      [[ " $with_value " == *" $word "* ]] && option=$word
    elif [[ " $commands " == *" $word "* ]]; then
      path="\${path:+$path }$word"
      _blazar_enforcement_command "$path"
    else
      position=$((position + 1))
    fi
  done
  [[ $current == '=' ]] && current=''
  if [[ $current == --*=* && -z $option ]]; then
    option=\${current%%=*}
    prefix="$option="
    current=\${current#*=}
  fi

  if [[ -n $option ]]; then
    values=$(_blazar_enforcement_values "$path:$option")
  elif [[ $current == -* ]]; then
    values=$options
  elif [[ -n $commands ]]; then
    values=$commands
  else
    [[ -n $variadic && $position -ge \${#arguments[@]} ]] && position=$((\${#arguments[@]} - 1))
    values=\${arguments[position]:-}
  fi
  # bash completes names of files if there is no reply.
  if [[ $values == ${FILES} ]]; then
    compopt -o filenames 2>/dev/null
  else
    compopt +o default 2>/dev/null
    COMPREPLY=($(compgen -P "$prefix" -W "$values" -- "$current"))
  fi
}

complete -o default -F _blazar_enforcement blazar-enforcement
`;
}

function commandCase({ path, commands, options, arguments: args }: CommandTree): string {
  const flags = options.flatMap((option) => option.flags);
  const withValue = options.filter(({ value }) => value !== undefined).flatMap((option) => option.flags);
  const lines = [
    ...(commands.length > 0 ? [`commands='${commands.map((one) => one.path.at(-1)).join(' ')}'`] : []),
    `options='${flags.join(' ')}'`,
    ...(withValue.length > 0 ? [`with_value='${withValue.join(' ')}'`] : []),
    ...(args.length > 0 ? [`arguments=(${args.map((argument) => `'${wordsOf(argument)}'`).join(' ')})`] : []),
    ...(args.at(-1)?.isVariadic === true ? ["variadic='yes'"] : []),
  ];
  return `    '${path.join(' ')}')\n${lines.map((line) => `      ${line}\n`).join('')}      ;;`;
}

/** Options with the same values share a line. */
function valueCases(commands: readonly CommandTree[]): string {
  const patterns = new Map<string, string[]>();
  for (const { path, options } of commands) {
    for (const { flags, value } of options) {
      const words = value === undefined ? '' : wordsOf(value);
      if (words !== '') {
        const named = flags.map((flag) => `'${path.join(' ')}:${flag}'`);
        patterns.set(words, [...(patterns.get(words) ?? []), ...named]);
      }
    }
  }
  return [...patterns]
    .map(([words, named]) => `    ${named.join(' | \\\n      ')})\n      echo '${words}'\n      ;;`)
    .join('\n');
}

function wordsOf({ choices, isFile }: { choices: readonly string[]; isFile: boolean }): string {
  return isFile ? FILES : choices.join(' ');
}
