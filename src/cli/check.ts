/** `check`: judges requests from files as the policy service would. */
import { Argument, Command, Option } from 'commander';
import { withinDeadline } from '../base/deadline.ts';
import { createLogger, type LogLevel } from '../base/logger.ts';
import type { ExplainedRule, ExplainedRules } from './cases/explanations.ts';
import {
  ExitCode,
  printJson,
  printTable,
  printWarnings,
  refuseStandardInputTwice,
  UsageError,
} from './common/output.ts';
import { readRequest } from './common/requests.ts';
import { addSourceFlags, type FormatFlags, formatFlag, logLevelFlag, sourcesOf } from './common/sources.ts';

type Operation = 'create' | 'update' | 'end';

interface CheckFlags extends FormatFlags {
  readonly explain?: boolean;
  readonly estimate?: boolean;
  readonly logLevel: LogLevel;
}

type Judged = Pick<Decision, 'allowed' | 'message' | 'filter' | 'failed' | 'warnings' | 'outcomes'>;

/** One line of `--format json`. */
interface Judgement extends Judged, Partial<Awaited<ReturnType<typeof shownEstimate>>> {
  readonly file: string;
  readonly operation: Operation;
  /** With `--explain`, if there are rules. */
  readonly rules?: readonly ExplainedRule[];
}

type Deadline = import('../base/deadline.ts').Deadline;
type Decision = import('../filter/verdict.ts').Decision;
type Estimate = import('../enforcement/estimate/ways.ts').Estimate;
type UsageEnforcement = import('../enforcement/enforcement.ts').UsageEnforcement;

export function checkCommand(): Command {
  const command = new Command('check')
    .description(
      'Check requests against the configuration, without recording anything. Exit code: 0 all allowed, 1 some rejected, 2 a mistake in the configuration, the requests or the command line, 3 a filter failed.',
    )
    .addArgument(
      new Argument('<operation>', 'Operation of the requests.').choices(['create', 'update', 'end']),
    )
    .argument('<file...>', 'Files with the JSON body of a request; - reads standard input.')
    .addOption(formatFlag('table', 'json'))
    .option('--explain', 'Run every filter, also after the first rejection, and show each verdict.')
    .addOption(
      new Option(
        '--estimate',
        'Show what each lease, or change of one, takes and what is left after it; if it is rejected, what would be allowed.',
      ).conflicts('explain'),
    )
    .addOption(logLevelFlag('warn'));
  return addSourceFlags(command).action(check);
}

async function check(operation: Operation, files: readonly string[], flags: CheckFlags): Promise<void> {
  if (flags.estimate === true && operation === 'end') {
    throw new UsageError('--estimate: expected the operation create or update');
  }
  // Before schemas are created. Each is used once or twice; compiling them would take a twentieth of the run.
  (await import('zod')).config({ jitless: true });
  const { requireConfiguration, sectionOf } = await import('../enforcement/configuration.ts');
  const { UsageEnforcement } = await import('../enforcement/enforcement.ts');
  const { serviceSection } = await import('../server/configuration/options.ts');
  const { SECTIONS } = await import('../server/configuration/sections.ts');
  const configuration = await requireConfiguration(sourcesOf(flags), SECTIONS, process.cwd());
  printWarnings(configuration.problems);
  const { deadline: seconds, body_limit } = sectionOf(configuration, serviceSection);
  const requests = await readRequests(operation, files, body_limit);
  const rules =
    flags.explain === true ? new (await import('./cases/explanations.ts')).ExplainedRules() : undefined;
  const enforcement = await UsageEnforcement.fromConfiguration(configuration, {
    logger: createLogger(flags.logLevel),
    ruleObserver: rules,
  });
  const judgements: Judgement[] = [];
  try {
    for (const { file, body } of requests) {
      const judgement = await withinDeadline(seconds, (deadline) =>
        judge(enforcement, operation, file, body, {
          explain: flags.explain ?? false,
          estimate: flags.estimate ?? false,
          deadline,
          rules,
        }),
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

/** Reads all requests before the first is judged, so that errors are found before any output. */
async function readRequests(
  operation: Operation,
  files: readonly string[],
  maxBytes: number,
): Promise<{ file: string; body: unknown }[]> {
  refuseStandardInputTwice(files);
  const requests = [];
  for (const file of files) {
    const { body } = await readRequest(file, operation, maxBytes);
    requests.push({ file, body });
  }
  return requests;
}

async function judge(
  enforcement: UsageEnforcement,
  operation: Operation,
  file: string,
  body: unknown,
  {
    explain,
    estimate,
    deadline,
    rules,
  }: { explain: boolean; estimate: boolean; deadline: Deadline; rules: ExplainedRules | undefined },
): Promise<Judgement> {
  // Already parsed by `readRequests`.
  const request = body as Parameters<UsageEnforcement['checkUpdate']>[0];
  const judged = ({ allowed, message, filter, failed, warnings, outcomes }: Judged) => ({
    file,
    operation,
    allowed,
    message,
    filter,
    failed,
    warnings,
    outcomes,
  });
  if (operation === 'end') {
    const ended = await enforcement.onEnd(request, { deadline, dryRun: true });
    return judged({ ...ended, allowed: true, message: null, filter: null });
  }
  if (estimate) {
    const estimated = await enforcement.estimate(request, { deadline, acceptsChanges: false });
    return { ...judged(estimated.decision), ...(await shownEstimate(estimated)) };
  }
  const options = { explain, deadline, acceptsChanges: false, dryRun: true };
  const judgement = judged(
    operation === 'create'
      ? await enforcement.checkCreate(request, options)
      : await enforcement.checkUpdate(request, options),
  );
  const said = rules?.take() ?? [];
  return said.length === 0 ? judgement : { ...judgement, rules: said };
}

/** Usage in unit-hours, in decimal; counts as whole numbers. */
async function shownEstimate({ charges, suggestions, searched }: Estimate) {
  const { chargeText } = await import('../filter/claim.ts');
  return {
    charges: charges.map(({ filter, account, kind, amount, precision, left }) => ({
      filter,
      account,
      amount: chargeText(kind, amount),
      precision,
      left: left === null ? null : chargeText(kind, left, 'down'),
    })),
    suggestions: suggestions.map(({ change, text, lease }) => ({ change, text, lease })),
    searched,
  };
}

async function printJudgements(judgements: readonly Judgement[], explain: boolean): Promise<void> {
  const { explanationLines } = await import('./cases/explanations.ts');
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
      ...(judgement.charges ?? []).map(({ filter, account, amount, precision, left }) => [
        '',
        '',
        precision === 'exact' ? 'takes' : `takes ${precision}`,
        filter,
        `${amount} of ${account}${left === null ? '' : `, ${left} left after it`}`,
      ]),
      ...(judgement.suggestions ?? []).map(({ text }) => ['', '', 'instead', '', text]),
      ...(judgement.searched == null ? [] : [['', '', 'searched', '', judgement.searched]]),
      ...(judgement.rules ?? []).flatMap((one) => [
        ['', '', one.said, `rule ${one.rule}`, one.audit ? 'in audit mode' : ''],
        ...explanationLines(one).map((line) => ['', '', '', '', line]),
      ]),
    ]),
  );
}

/** An end is a notification, which is neither allowed nor rejected. */
function answer(operation: Operation, { allowed, failed }: { allowed: boolean; failed: boolean }): string {
  if (failed) {
    return 'failed';
  }
  return operation === 'end' ? 'told' : allowed ? 'allowed' : 'rejected';
}

function exitCode(judgements: readonly Judgement[]): number {
  if (judgements.some(({ failed }) => failed)) {
    return ExitCode.failed;
  }
  return judgements.every(({ allowed }) => allowed) ? ExitCode.ok : ExitCode.rejected;
}
