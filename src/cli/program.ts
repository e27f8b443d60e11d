/** `blazar-enforcement`: its commands, and the report of their errors. */
import { Command } from 'commander';
import { packageVersion } from '../base/version.ts';
import { onOneLine } from './common/output.ts';
import { reportFailure, toItsEnd } from './common/standard-streams.ts';

/** In the order of the help. Only the called command is loaded: the others would delay the start. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  check: async () => (await import('./check.ts')).checkCommand(),
  test: async () => (await import('./test.ts')).testCommand(),
  serve: async () => (await import('./serve.ts')).serveCommand(),
  config: async () => (await import('./config.ts')).configCommand(),
  filters: async () => (await import('./config.ts')).filtersCommand(),
  decisions: async () => (await import('./decisions.ts')).decisionsCommand(),
  ledger: async () => (await import('./ledger.ts')).ledgerCommand(),
  budget: async () => (await import('./budget.ts')).budgetCommand(),
  project: async () => (await import('./project.ts')).projectCommand(),
  report: async () => (await import('./report.ts')).reportCommand(),
  outbox: async () => (await import('./outbox.ts')).outboxCommand(),
  conformance: async () => (await import('./conformance.ts')).conformanceCommand(),
  skypilot: async () => (await import('./skypilot.ts')).skypilotCommand(),
  'scheduling-policy': async () => (await import('./scheduling-policy.ts')).schedulingPolicyCommand(),
  completion: async () => (await import('./completion/completion.ts')).completionCommand(createProgram),
};

const OPTIONS_IN_HELP: Readonly<Record<string, readonly string[]>> = {
  check: ['enforcement', 'ledger'],
  serve: ['service', 'enforcement', 'ledger', 'skypilot', 'kubernetes'],
  'config show': ['enforcement', 'service', 'ledger', 'skypilot', 'kubernetes'],
  'config validate': ['enforcement', 'service', 'ledger', 'skypilot', 'kubernetes'],
  'skypilot review': ['skypilot'],
  'skypilot policies': ['skypilot'],
  ...Object.fromEntries(
    [
      ...['upgrade', 'list', 'show', 'export', 'verify', 'reconcile'].map((name) => `ledger ${name}`),
      ...['list', 'show', 'retry', 'discard'].map((name) => `outbox ${name}`),
      ...['set', 'remove', 'show', 'list', 'history', 'import', 'export'].map((name) => `budget ${name}`),
      'report usage',
    ].map((name) => [name, ['ledger']]),
  ),
};

/** `named`: the called command. If there is none of that name, all are loaded, for help and suggestions. */
export async function createProgram(named = ''): Promise<Command> {
  const program = new Command('blazar-enforcement').description(
    'Usage enforcement for reservable clouds: who may lease what, for how long, how much.',
  );
  const called = Object.hasOwn(COMMANDS, named) ? COMMANDS[named] : undefined;
  for (const command of called === undefined ? Object.values(COMMANDS) : [called]) {
    program.addCommand(await command());
  }
  for (const command of allCommands(program)) {
    requireOptionsLast(command);
    command
      .exitOverride()
      .version(packageVersion(), '-V, --version', 'Print the version.')
      .helpOption('-h, --help', 'Print this help.')
      .helpCommand(false)
      // On one line: commander writes its suggestion on a second one.
      .configureOutput({
        outputError: (text) => process.stderr.write(`${onOneLine(text.trim())}\n`),
        // Suppresses the whole help when a command is missing: `reportFailure` writes one line instead.
        writeErr: () => {},
      });
  }
  return program;
}

function allCommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(allCommands)];
}

/** The name with its parent commands, without the program's name. */
function nameOf(command: Command): string {
  const { parent } = command;
  return parent === null || parent.parent === null ? command.name() : `${nameOf(parent)} ${command.name()}`;
}

/** Adds the options of the command's sections to its help. Only for --help: loading filters takes time. */
async function addOptionsHelp(program: Command, args: readonly string[]): Promise<void> {
  const called = args.reduce(
    (command, arg) => command.commands.find((one) => one.name() === arg) ?? command,
    program,
  );
  const sections = OPTIONS_IN_HELP[nameOf(called)];
  if (sections !== undefined) {
    const { optionsHelp } = await import('./common/known-options.ts');
    called.addHelpText('after', await optionsHelp(sections, args));
  }
}

/** Runs the command of the arguments, and sets the exit code of the process. */
export async function runProgram(args: readonly string[]): Promise<void> {
  try {
    const program = await createProgram(args[0]);
    if (args.some((argument) => argument === '-h' || argument === '--help')) {
      await addOptionsHelp(program, args);
    }
    await toItsEnd(async () => void (await program.parseAsync(args, { from: 'user' })));
  } catch (thrown) {
    process.exitCode = reportFailure(thrown);
  }
}

/**
 * Lets an action check the required options of its command instead of the parser, which would not report that
 * `--befor` is unknown, but that `--before` is missing.
 */
function requireOptionsLast(command: Command): void {
  const required = command.options.filter(({ mandatory }) => mandatory);
  if (required.length === 0) {
    return;
  }
  for (const option of required) {
    option.makeOptionMandatory(false);
  }
  command.hook('preAction', () => {
    const missing = required.find((option) => command.getOptionValue(option.attributeName()) === undefined);
    if (missing !== undefined) {
      command.error(`error: required option '${missing.flags}' not specified`);
    }
  });
}
