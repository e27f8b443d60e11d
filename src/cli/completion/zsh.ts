/** The completion script for zsh, to be sourced, or put into a folder of `fpath` as `_blazar-enforcement`. */
import {
  allOf,
  type CommandTree,
  firstSentence,
  type TreeArgument,
  type TreeOption,
} from './command-tree.ts';

export function zshScript(tree: CommandTree): string {
  return `#compdef blazar-enforcement
# Completion of blazar-enforcement in zsh, printed by: blazar-enforcement completion zsh

${allOf(tree).map(commandFunction).join('\n')}
if [[ $funcstack[1] == _blazar-enforcement ]]; then
  _blazar_enforcement "$@"
else
  compdef _blazar_enforcement blazar-enforcement
fi
`;
}

function nameOf(path: readonly string[]): string {
  return ['_blazar_enforcement', ...path.map((name) => name.replaceAll('-', '_'))].join('_');
}

function commandFunction({ path, commands, options, arguments: args }: CommandTree): string {
  const specs = options.map(optionSpec);
  if (commands.length === 0) {
    return `${nameOf(path)}() {\n  _arguments -s -S${lines([...specs, ...args.map(argumentSpec)])}\n}\n`;
  }
  const described = commands.map(({ path: below, description }) =>
    quoted(`${below.at(-1)}:${firstSentence(description)}`),
  );
  const called = commands.map(({ path: below }) => `        ${below.at(-1)}) ${nameOf(below)} ;;`);
  return `${nameOf(path)}() {
  local curcontext=$curcontext state line
  local -a commands
  _arguments -C -s -S${lines([...specs, "'1: :->command'", "'*:: :->arguments'"])}
  case $state in
    command)
      commands=(${described.map((one) => `\n        ${one}`).join('')}
      )
      _describe command commands
      ;;
    arguments)
      case $line[1] in
${called.join('\n')}
      esac
      ;;
  esac
}
`;
}

function lines(specs: readonly string[]): string {
  return specs.map((spec) => ` \\\n    ${spec}`).join('');
}

/** `'*'{-r,--filter}'[Run only cases]:text: '`; the star, because options with a value may be repeated. */
function optionSpec({ flags, description, value }: TreeOption): string {
  const [only = ''] = flags;
  const exclusive = flags.length > 1 ? `'(${flags.join(' ')})'` : '';
  const names = flags.length > 1 ? `{${flags.join(',')}}` : only;
  const help = `[${firstSentence(description).replaceAll(/[[\]]/g, '')}]`;
  if (value === undefined) {
    return `${exclusive}${names}${quoted(help)}`;
  }
  return `'*'${names.replaceAll(/(--[a-z-]+)/g, '$1=')}${quoted(`${help}:${action(value)}`)}`;
}

function argumentSpec(argument: TreeArgument): string {
  return quoted(`${argument.isVariadic ? '*' : ''}:${action(argument)}`);
}

/** `format:(table json)` */
function action({ name, choices, isFile }: { name: string; choices: readonly string[]; isFile: boolean }) {
  const values = isFile ? '_files' : choices.length > 0 ? `(${choices.join(' ')})` : ' ';
  return `${name.replaceAll(':', ' ')}:${values}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
