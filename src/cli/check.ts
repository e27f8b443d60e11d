/** `check`: requests from files, judged as the policy service would. */
import { Argument, Command } from 'commander';
import { readTextFile } from '../config/read-file.ts';
import { withinDeadline } from '../deadline.ts';
import { errorText, InvalidRequestError } from '../errors.ts';
import { createLogger, type LogLevel } from '../logger.ts';
import { ExitCode, printJson, printTable, printWarnings, UsageError } from './output.ts';
import { addSourceFlags, formatFlag, logLevelFlag, type SourceFlags, sourcesOf } from './sources.ts';
import { readStandardInput } from './standard-input.ts';

type Operation = 'create' | 'update' | 'end';

interface CheckFlags extends SourceFlags {
  readonly format: 'table' | 'json';
  readonly explain?: boolean;
  readonly logLevel: LogLevel;
}

/** One line of `--format json`. */
interface Judgement {
  readonly file: string;
  readonly operation: Operation;
  readonly allowed: boolean;
  readonly message: string | null;
  readonly filter: string | null;
  readonly failed: boolean;
  readonly warnings: readonly string[];
  readonly outcomes: readonly Outcome[];
}

type Deadline = import('../deadline.ts').Deadline;
type Outcome = import('../filter/verdict.ts').Outcome;
type UsageEnforcement = import('../enforcement/enforcement.ts').UsageEnforcement;

export function checkCommand(): Command {
  const command = new Command('check')
    .description(
      'Judge requests with the configuration, and record nothing. Exit code: 0 all allowed, 1 some rejected, 2 a mistake in the configuration, the requests or the command, 3 a filter failed.',
    )
    .addArgument(new Argument('<operation>', 'What is asked for.').choices(['create', 'update', 'end']))
    .argument('<file...>', 'Files with the JSON body of such a request; - is standard input.')
    .addOption(formatFlag('table', 'json'))
    .option('--explain', 'Ask every filter, also behind the first rejection, and show what each says.')
    .addOption(logLevelFlag('warn'));
  return addSourceFlags(command).action(check);
}

async function check(operation: Operation, files: readonly string[], flags: CheckFlags): Promise<void> {
  const { requireConfiguration, sectionOf } = await import('../enforcement/configuration.ts');
  const { UsageEnforcement } = await import('../enforcement/enforcement.ts');
  const { serviceSection } = await import('../server/options.ts');
  const { SECTIONS } = await import('../server/sections.ts');
  const configuration = await requireConfiguration(sourcesOf(flags), SECTIONS, process.cwd());
  printWarnings(configuration.problems);
  const { deadline: seconds, body_limit } = sectionOf(configuration, serviceSection);
  const requests = await readRequests(operation, files, body_limit);
  const enforcement = await UsageEnforcement.fromConfiguration(configuration, {
    logger: createLogger(flags.logLevel),
  });
  const judgements: Judgement[] = [];
  try {
    for (const { file, body } of requests) {
      const judgement = await withinDeadline(seconds, (deadline) =>
        judge(enforcement, operation, file, body, { explain: flags.explain ?? false, deadline }),
      );
      judgements.push(judgement);
      if (flags.format === 'json') {
        printJson(judgement);
      }
    }
  } finally {
    await enforcement.close();
  }
  if (flags.format === 'table') {
    await printJudgements(judgements, flags.explain ?? false);
  }
  process.exitCode = exitCode(judgements);
}

/** All of them before the first is judged: a mistake in one is found before any answer is printed. */
async function readRequests(
  operation: Operation,
  files: readonly string[],
  maxBytes: number,
): Promise<{ file: string; body: unknown }[]> {
  if (files.filter((file) => file === '-').length > 1) {
    throw new UsageError('standard input (-) can be read once');
  }
  const { parseCreateRequest, parseEndRequest, parseUpdateRequest } = await import(
    '../lease/parse-request.ts'
  );
  const parse = { create: parseCreateRequest, update: parseUpdateRequest, end: parseEndRequest }[operation];
  const requests = [];
  for (const file of files) {
    try {
      const text = file === '-' ? await readStandardInput(maxBytes) : readTextFile(file, maxBytes);
      const body = JSON.parse(text) as unknown;
      parse(body);
      requests.push({ file, body });
    } catch (thrown) {
      if (thrown instanceof InvalidRequestError) {
        throw new UsageError(`${shownName(file)}: ${thrown.message}`);
      }
      throw new UsageError(
        `${shownName(file)}: ${thrown instanceof SyntaxError ? 'expected JSON' : `could not be read: ${errorText(thrown)}`}`,
      );
    }
  }
  return requests;
}

async function judge(
  enforcement: UsageEnforcement,
  operation: Operation,
  file: string,
  body: unknown,
  { explain, deadline }: { explain: boolean; deadline: Deadline },
): Promise<Judgement> {
  // `readRequests` has seen that it is one.
  const request = body as Parameters<UsageEnforcement['checkUpdate']>[0];
  if (operation === 'end') {
    const { failed, warnings, outcomes } = await enforcement.onEnd(request, { deadline, dryRun: true });
    return { file, operation, allowed: true, message: null, filter: null, failed, warnings, outcomes };
  }
  const options = { explain, deadline, acceptsChanges: false, dryRun: true };
  const { allowed, message, filter, failed, warnings, outcomes } =
    operation === 'create'
      ? await enforcement.checkCreate(request, options)
      : await enforcement.checkUpdate(request, options);
  return { file, operation, allowed, message, filter, failed, warnings, outcomes };
}

async function printJudgements(judgements: readonly Judgement[], explain: boolean): Promise<void> {
  await printTable(
    ['FILE', 'OPERATION', 'ANSWER', 'FILTER', 'MESSAGE'],
    judgements.flatMap((judgement) => [
      [
        judgement.file,
        judgement.operation,
        answer(judgement.operation, judgement),
        judgement.filter ?? '',
        judgement.message ?? '',
      ],
      ...judgement.warnings.map((warning) => ['', '', 'warning', '', warning]),
      ...(explain
        ? judgement.outcomes.map((outcome) => [
            '',
            '',
            answer(judgement.operation, outcome),
            outcome.filter,
            outcome.message ?? '',
          ])
        : []),
    ]),
  );
}

/** An end is no question: filters are told of it. */
function answer(operation: Operation, { allowed, failed }: { allowed: boolean; failed: boolean }): string {
  if (failed) {
    return 'failed';
  }
  return operation === 'end' ? 'told' : allowed ? 'allowed' : 'rejected';
}

function shownName(file: string): string {
  return file === '-' ? 'standard input' : file;
}

function exitCode(judgements: readonly Judgement[]): number {
  if (judgements.some(({ failed }) => failed)) {
    return ExitCode.failed;
  }
  return judgements.every(({ allowed }) => allowed) ? ExitCode.ok : ExitCode.rejected;
}
