/** `npm run bench`: measures what the README promises about speed. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { suite as admission } from './admission.ts';
import { trial as blazarRound } from './blazar-round.ts';
import { suite as check } from './check.ts';
import { suite as coldStart } from './cold-start.ts';
import { trial as decisionStore } from './decision-store.ts';
import { trial as estimate } from './estimate.ts';
import { suite as externalService } from './external-service.ts';
import { trial as faults } from './faults.ts';
import { compare } from './harness/results.ts';
import { runOnce } from './harness/run.ts';
import type { Run, Suite, Trial } from './harness/suite.ts';
import { trial as ledger } from './ledger.ts';
import { trial as ledgerClients } from './ledger-clients.ts';
import { suite as outbox } from './outbox.ts';
import { suite as peers } from './peers.ts';
import { trial as peopleLists } from './people-lists.ts';
import { trial as replay } from './replay.ts';
import { printJsonReport, printTableReport } from './report.ts';
import { suite as rules } from './rules.ts';
import { suite as service } from './service.ts';
import { trial as fuzz } from './service-fuzz.ts';
import { trial as latency } from './service-latency.ts';
import { trial as memory } from './service-memory.ts';
import { suite as tokens } from './service-tokens.ts';
import { trial as worstCase } from './service-worst-case.ts';
import { suite as skypilotReview } from './skypilot-review.ts';
import { trial as tracing } from './tracing.ts';
import { trial as upstream } from './upstream.ts';
import { trial as workers } from './workers.ts';

const MATTERS: readonly (Suite | Trial)[] = [
  check,
  peers,
  upstream,
  rules,
  replay,
  externalService,
  outbox,
  coldStart,
  skypilotReview,
  admission,
  ledger,
  ledgerClients,
  decisionStore,
  estimate,
  peopleLists,
  blazarRound,
  service,
  workers,
  tracing,
  tokens,
  latency,
  memory,
  worstCase,
  faults,
  fuzz,
];

interface Flags {
  readonly only?: readonly string[];
  readonly runs: number;
  readonly requests?: number;
  readonly format: 'table' | 'json';
  readonly quick?: boolean;
}

async function measureAll({ only, runs, requests, format, quick = false }: Flags): Promise<void> {
  const matters = MATTERS.filter(({ name }) => only?.includes(name) ?? true);
  const results = [];
  for (const matter of matters) {
    const times = 'once' in matter && matter.once ? 1 : runs;
    const measured: Run[] = [];
    for (let run = 1; run <= times; run += 1) {
      process.stderr.write(`${matter.name}: run ${run} of ${times}\n`);
      measured.push(
        'measure' in matter
          ? await matter.measure({ quick, requests })
          : await runOnce(matter, quick ? { rounds: 1, turnMilliseconds: 0 } : matter),
      );
    }
    results.push(...matter.comparisons.map((comparison) => compare(matter.name, comparison, measured)));
  }
  const report = { runs, results, matters };
  if (format === 'json') {
    printJsonReport(report);
  } else {
    await printTableReport(report);
  }
}

function positiveInteger(most: number): (text: string) => number {
  return (text) => {
    const number = Number(text);
    if (!/^[1-9]\d*$/.test(text) || number > most) {
      throw new InvalidArgumentError(`Expected a whole number from 1 to ${most}.`);
    }
    return number;
  };
}

await new Command('bench')
  .description('Measure the performance and compare it with the targets.')
  .addOption(
    new Option('--only <name...>', 'Measure only these topics.').choices(MATTERS.map(({ name }) => name)),
  )
  .option('--runs <count>', 'Number of runs.', positiveInteger(9999), 5)
  .option(
    '--requests <count>',
    'Number of requests for memory and fuzz. Default: a million and a hundred thousand.',
    positiveInteger(1_000_000_000),
  )
  .addOption(new Option('--format <format>', 'Output format.').choices(['table', 'json']).default('table'))
  .option('--quick', 'One short turn each, to check that everything runs; the numbers are meaningless.')
  .action(measureAll)
  .parseAsync();
