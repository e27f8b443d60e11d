/** `npm run bench`: what the README promises about speed, measured. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { suite as check } from './check.ts';
import { suite as coldStart } from './cold-start.ts';
import { suite as externalService } from './external-service.ts';
import { compare } from './harness/results.ts';
import { type Run, runOnce } from './harness/run.ts';
import type { Suite } from './harness/suite.ts';
import { suite as peers } from './peers.ts';
import { printJsonReport, printTableReport } from './report.ts';

const SUITES: readonly Suite[] = [check, peers, externalService, coldStart];

interface Flags {
  readonly only?: readonly string[];
  readonly runs: number;
  readonly format: 'table' | 'json';
  readonly quick?: boolean;
}

async function measureAll({ only, runs, format, quick }: Flags): Promise<void> {
  const suites = SUITES.filter(({ name }) => only?.includes(name) ?? true);
  const results = [];
  for (const suite of suites) {
    const measured: Run[] = [];
    for (let run = 1; run <= runs; run += 1) {
      process.stderr.write(`${suite.name}: run ${run} of ${runs}\n`);
      measured.push(await runOnce(suite, quick ? { rounds: 1, turnMilliseconds: 0 } : suite));
    }
    results.push(...suite.comparisons.map((comparison) => compare(suite.name, comparison, measured)));
  }
  const report = { runs, results, suites };
  if (format === 'json') {
    printJsonReport(report);
  } else {
    await printTableReport(report);
  }
}

function positiveInteger(text: string): number {
  if (!/^[1-9]\d{0,3}$/.test(text)) {
    throw new InvalidArgumentError('Expected a whole number from 1 to 9999.');
  }
  return Number(text);
}

await new Command('bench')
  .description('Measure, in turns and in own processes, and compare with the targets.')
  .addOption(
    new Option('--only <name...>', 'Measure these suites only.').choices(SUITES.map(({ name }) => name)),
  )
  .option('--runs <count>', 'How often everything is measured anew.', positiveInteger, 5)
  .addOption(new Option('--format <format>', 'How to print it.').choices(['table', 'json']).default('table'))
  .option('--quick', 'One short turn each: shows that everything runs, and says nothing about speed.')
  .action(measureAll)
  .parseAsync();
