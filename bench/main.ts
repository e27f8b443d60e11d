/** `npm run bench`: measures what the README promises about speed. */
import { join } from 'node:path';
import { inspect } from 'node:util';
import { Command, InvalidArgumentError, Option } from 'commander';
import { suite as admission } from './admission.ts';
import { trial as blazarRound } from './blazar-round.ts';
import { suite as check } from './check.ts';
import { suite as coldStart } from './cold-start.ts';
import { trial as decisionStore } from './decision-store.ts';
import { trial as estimate } from './estimate.ts';
import { suite as externalService } from './external-service.ts';
import { trial as faults } from './faults.ts';
import { trial as growth } from './growth.ts';
import { beQuick } from './harness/amount.ts';
import type { Result } from './harness/results.ts';
import type { Suite, Trial } from './harness/suite.ts';
import { trial as ledger } from './ledger.ts';
import { trial as ledgerClients } from './ledger-clients.ts';
import { measureTopic } from './measure-topic.ts';
import { suite as outbox } from './outbox.ts';
import { suite as peers } from './peers.ts';
import { trial as peopleLists } from './people-lists.ts';
import { currentLoad, loadWarning, PerformanceRecord } from './performance/record.ts';
import { trial as replay } from './replay.ts';
import { printJsonReport, printTableReport } from './report.ts';
import { ROOT } from './requests.ts';
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
  growth,
  ledgerClients,
  decisionStore,
  estimate,
  peopleLists,
  blazarRound,
  service,
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
  /** The folder. */
  readonly output?: string;
  readonly write: boolean;
  readonly render?: boolean;
}

async function measureAll(flags: Flags): Promise<void> {
  const { only, runs, requests, format, quick = false } = flags;
  const load = currentLoad();
  const folder = recordedIn(flags);
  const record = folder === undefined ? undefined : new PerformanceRecord(folder, load);
  // Rather than after an hour, if it cannot be written.
  record?.write();
  if (flags.render) {
    return;
  }
  const warning = quick ? undefined : loadWarning(load);
  if (warning !== undefined) {
    process.stderr.write(`${warning}\n`);
  }
  if (quick) {
    beQuick();
  }
  const matters = MATTERS.filter(({ name }) => only?.includes(name) ?? true);
  const results: Result[] = [];
  const notMeasured: Record<string, string> = {};
  for (const [index, matter] of matters.entries()) {
    const began = new Date();
    const seconds = record?.expectedSeconds(matters.slice(index), runs);
    const where = process.stderr.isTTY ? placeAmong(index + 1, matters.length, seconds) : '';
    const outcome = await measureTopic(matter, { quick, requests, runs }, (run, of) => {
      process.stderr.write(`${matter.name}: run ${run} of ${of}${where}\n`);
    });
    switch (outcome.kind) {
      case 'measured':
        results.push(...outcome.results);
        break;
      case 'peer missing':
        notMeasured[matter.name] = outcome.why;
        process.stderr.write(`SKIPPED: ${matter.name}: ${outcome.why}\n`);
        break;
      case 'failed':
        notMeasured[matter.name] = 'it failed';
        process.stderr.write(`FAILED: ${matter.name}: ${inspect(outcome.thrown)}\n`);
        process.exitCode = 1;
        break;
    }
    try {
      record?.add(matter, began, outcome);
    } catch (thrown) {
      process.stderr.write(`NOT WRITTEN: ${matter.name}: ${inspect(thrown)}\n`);
      process.exitCode = 1;
    }
  }
  const report = { runs, results, matters, notMeasured };
  if (format === 'json') {
    printJsonReport(report);
  } else {
    await printTableReport(report);
  }
  if (folder !== undefined) {
    process.stderr.write(`written: ${join(folder, 'performance.md')}\n`);
  }
}

/** Where the page is. `undefined`: nothing is written, since the numbers are not what the page promises. */
function recordedIn({ output, write, quick, requests }: Flags): string | undefined {
  if (!write) {
    return undefined;
  }
  return output ?? (quick || requests !== undefined ? undefined : join(ROOT, 'docs'));
}

function placeAmong(topic: number, of: number, seconds: number | undefined): string {
  const left = seconds === undefined ? '' : `, about ${Math.ceil(seconds / 60)} min for it and what follows`;
  return `  (topic ${topic} of ${of}${left})`;
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
  .option('--output <folder>', 'Folder of performance.md, performance.json and images. Default: docs.')
  .option('--no-write', 'Write no page. Nor do --quick and --requests, without --output.')
  .option('--render', 'Measure nothing: write the page again, from performance.json.')
  .option('--quick', 'One short turn each, to check that everything runs; the numbers are meaningless.')
  .action(measureAll)
  .parseAsync();
