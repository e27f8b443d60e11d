/** `budget from-coral-credits`: prints remaining credits of coral-credits as a file for `budget import`. */
import { Command } from 'commander';
import { endpointFailures, pemOf, tokenOf } from '../common/endpoint.ts';
import { UsageError } from '../common/output.ts';
import { wholeNumber } from '../common/sources.ts';

interface CoralFlags {
  readonly resourceClass: string;
  readonly provider?: string;
  readonly tokenFile?: string;
  readonly caFile?: string;
  readonly timeout: number;
}

const TOKEN_VARIABLE = 'CORAL_CREDITS_TOKEN';
const MAX_ANSWER_BYTES = 67_108_864;

export function fromCoralCreditsCommand(): Command {
  return new Command('from-coral-credits')
    .description(
      'Print what is left of the credits in coral-credits as a file for budget import. Changes nothing there.',
    )
    .argument('<url>', 'The address of coral-credits, such as https://credits.example.org.')
    .requiredOption('--resource-class <name>', 'The resource class that budgets are to count, such as VCPU.')
    .option('--provider <name>', 'The resource provider that is this cloud. Default: the only one.')
    .option(
      '--token-file <path>',
      `A file with a token of coral-credits, in one line. Default: $${TOKEN_VARIABLE}.`,
    )
    .option('--ca-file <path>', 'The authorities to trust, in PEM.')
    .option(
      '--timeout <seconds>',
      'Maximum time for each answer, from connecting to its last byte.',
      wholeNumber('--timeout', 1, 3600),
      60,
    )
    .action(fromCoralCredits);
}

async function fromCoralCredits(address: string, flags: CoralFlags): Promise<void> {
  const { boundedFetch, serviceUrl } = await import('../../client/bounded-fetch.ts');
  const url = serviceUrl(address);
  if (url === undefined) {
    throw new UsageError('url: expected an http or https URL without credentials, query and fragment');
  }
  const token = await tokenOf(flags.tokenFile, TOKEN_VARIABLE);
  if (token === undefined) {
    throw new UsageError(`expected a token of coral-credits: --token-file or $${TOKEN_VARIABLE}`);
  }
  const { budgetCsv } = await import('../../ledger/budgets/csv.ts');
  const terms = await import('../../ledger/budgets/terms.ts');
  const { budgetsOf, coralCredits } = await import('./coral-credits-budgets.ts');
  const bounded = boundedFetch({
    timeout: flags.timeout,
    maxAnswerBytes: MAX_ANSWER_BYTES,
    ca: pemOf(flags.caFile),
  });
  try {
    await endpointFailures(async () => {
      const read = coralCredits(bounded, url, token);
      const budgets = await budgetsOf(read, flags, BigInt(Date.now()) * 1000n);
      process.stdout.write(await budgetCsv(budgets.map(terms.exportedBudget), true));
    });
  } finally {
    await bounded.close();
  }
}
