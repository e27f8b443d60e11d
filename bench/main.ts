/** `npm run bench`: measures the speed promised in the README. */
import { join } from 'node:path';
import { inspect } from 'node:util';
import type { Command } from 'commander';
import { suite as admission } from './admission.ts';
import { trial as blazarReconciliation } from './blazar-reconciliation.ts';
import { suite as check } from './check.ts';
import { suite as coldStart } from './cold-start.ts';
import { trial as decisionStore } from './decision-store.ts';
import { trial as estimate } from './estimate.ts';
import { suite as externalService } from './external-service.ts';
import { trial as faults } from './faults.ts';
import { benchCommand, type Flags } from './flags.ts';
import { trial as growth } from './growth.ts';
import { beQuick } from './harness/amount.ts';
import type { Result } from './harness/results.ts';
import type { Suite, Trial } from './harness/suite.ts';
import { trial as ledger } from './ledger.ts';
import { trial as ledgerClients } from './ledger-clients.ts';
import { shareDatabases } from './ledger-databases.ts';
import { trial as ledgerLists } from './ledger-lists.ts';
import { measureTopic } from './measure-topic.ts';
import { suite as outbox } from './outbox.ts';
import { suite as peers } from './peers.ts';
import { currentLoad, loadWarning, PerformanceRecord } from './performance/record.ts';
import { Checkout, findCommit, ReferenceProblem } from './reference/checkout.ts';
import { ReferenceTopic } from './reference/reference-topic.ts';
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
  ledgerLists,
  blazarReconciliation,
  service,
  tracing,
  tokens,
  latency,
  memory,
  worstCase,
  faults,
  fuzz,
];

async function measureAll(flags: Flags, command: Command): Promise<void> {
  const { against } = flags;
  // Before a build, which adds load.
  const load = currentLoad();
  if (against === undefined) {
    await measureTopics(flags, load);
    return;
  }
  let checkout: Checkout | undefined;
  try {
    checkout = new Checkout(ROOT, findCommit(ROOT, against));
    await checkout.make(tell);
    await measureTopics(flags, load, checkout);
  } catch (thrown) {
    if (thrown instanceof ReferenceProblem) {
      checkout?.remove();
      command.error(`error: --against: ${thrown.message}`);
    }
    throw thrown;
  } finally {
    checkout?.remove();
  }
}

function tell(text: string): void {
  process.stderr.write(`${text}\n`);
}

async function measureTopics(flags: Flags, load: number, checkout?: Checkout): Promise<void> {
  const { only, runs, requests, format, quick = false } = flags;
  const folder = recordedIn(flags);
  const record = folder === undefined ? undefined : new PerformanceRecord(folder, load, checkout?.commit);
  // Fails now if it cannot be written, rather than after an hour.
  record?.write();
  if (flags.render) {
    return;
  }
  const warning = quick ? undefined : loadWarning(load);
  if (warning !== undefined) {
    tell(warning);
  }
  if (quick) {
    beQuick();
  }
  const databases = quick ? shareDatabases() : undefined;
  const matters = MATTERS.filter(({ name }) => only?.includes(name) ?? true);
  const results: Result[] = [];
  const notMeasured: Record<string, string> = {};
  for (const [index, matter] of matters.entries()) {
    const began = new Date();
    // The duration in another commit is unknown.
    const seconds = checkout ? undefined : record?.expectedSeconds(matters.slice(index), runs);
    const where = process.stderr.isTTY ? placeAmong(index + 1, matters.length, seconds) : '';
    const scale = { quick, requests, runs };
    const reference = checkout && new ReferenceTopic(checkout, matter, scale, tell);
    const onRun = (run: number, of: number) => tell(`${matter.name}: run ${run} of ${of}${where}`);
    const outcome = await measureTopic(matter, scale, onRun, reference);
    switch (outcome.kind) {
      case 'measured':
        results.push(...outcome.results);
        break;
      case 'peer missing':
        notMeasured[matter.name] = outcome.why;
        tell(`SKIPPED: ${matter.name}: ${outcome.why}`);
        break;
      case 'failed':
        notMeasured[matter.name] = 'it failed';
        tell(`FAILED: ${matter.name}: ${inspect(outcome.thrown)}`);
        process.exitCode = 1;
        break;
    }
    try {
      record?.add(matter, began, outcome);
    } catch (thrown) {
      tell(`NOT WRITTEN: ${matter.name}: ${inspect(thrown)}`);
      process.exitCode = 1;
    }
  }
  await databases?.stop();
  const report = { runs, results, matters, notMeasured, against: checkout?.commit };
  if (format === 'json') {
    printJsonReport(report);
  } else {
    await printTableReport(report);
  }
  if (folder !== undefined) {
    tell(`written: ${join(folder, 'performance.md')}`);
  }
}

/** The folder of the page. `undefined`: nothing is written, since the page promises other numbers. */
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

await benchCommand(
  MATTERS.map(({ name }) => name),
  measureAll,
).parseAsync();
