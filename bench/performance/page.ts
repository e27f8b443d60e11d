/** `docs/performance.md`, generated only from the measurements. */
import { shownBeside, shownRatio, shownTarget, shownValue } from '../shown.ts';
import { inAreas } from './areas.ts';
import {
  IDLE_LOAD,
  isMeasured,
  type Machine,
  type MeasuredTopic,
  type Measurements,
  type Row,
  type Topic,
} from './measurements.ts';
import { pictures } from './pictures.ts';

type Named = readonly [name: string, topic: MeasuredTopic];

export function renderedPage(measurements: Measurements): string {
  const measured = Object.entries(measurements.topics).flatMap(([name, topic]): Named[] =>
    isMeasured(topic) ? [[name, topic]] : [],
  );
  const machines = distinctMachines(measured);
  const parts = [
    '# Performance',
    'What the project costs, as ratios beside something that you know: a ratio says more on another machine than a time does. `npm run bench` measures, and writes this page; edits are lost.',
    ...warning(measured),
    '## How to read it',
    'A row divides what is measured by what it is beside, within one run. Its ratio is the median of all runs, its spread the smallest and the largest. Both sides take turns, so that other work on the machine affects them equally. Where no peer is named, a row is beside the project itself, or a limit.',
    '## Run it yourself',
    ...howToRun(measured),
    '## The machine',
    ...machines.map((machine, index) => shownMachine(machine, machines.length > 1 ? index : undefined)),
    ...summary(measured),
    ...references(measured),
    ...growth(measurements),
    ...[...inAreas(Object.keys(measurements.topics))].flatMap(([area, names]) => [
      `## ${area}`,
      ...names.flatMap((name) => shownTopic(name, measurements.topics[name], machines)),
    ]),
  ];
  return `${parts.join('\n\n')}\n`;
}

function warning(measured: readonly Named[]): string[] {
  const disturbed = measured.filter(([, { load }]) => load > IDLE_LOAD);
  if (disturbed.length === 0) {
    return [];
  }
  const which =
    disturbed.length === measured.length
      ? 'anything here'
      : disturbed.map(([name]) => `[${name}](#${name})`).join(', ');
  return [
    `> **The machine was not idle** before it measured ${which}: the load average was above ${IDLE_LOAD}. These numbers are not to be relied on.`,
  ];
}

function howToRun(measured: readonly Named[]): string[] {
  const seconds = measured.reduce((sum, [, topic]) => sum + topic.seconds, 0);
  return [
    '```sh\nnpm ci\nnpm run bench\nnpm run bench -- --only check rules\nnpm run bench -- --against HEAD~1\n```',
    `All that is below took ${shownDuration(seconds)}. \`npm run bench\` measures everything five times; with names of topics, what the page says about these topics is replaced. With \`--against\`, a tag, branch or commit is checked out and built in a temporary folder, and each row shows what its package does in the same runs. \`npm run bench -- --help\` lists topics and flags. PostgreSQL comes as an npm package; \`ledger-clients\` needs \`pgbench\`, and \`upstream\` the source of Blazar. A topic whose peer is missing is left out, and says so. Nothing else may run meanwhile: the page says if the load average was above ${IDLE_LOAD} before.`,
  ];
}

function shownMachine(machine: Machine, index: number | undefined): string {
  const { processor, cores, memoryGiB, kernel, node, postgresql } = machine;
  const facts = `${cores} × ${processor}, ${memoryGiB} GiB of memory, Linux ${kernel}, Node.js ${node}, PostgreSQL ${postgresql}.`;
  return index === undefined ? facts : `Machine ${index + 1}: ${facts}`;
}

function distinctMachines(measured: readonly Named[]): Machine[] {
  const byText = new Map(measured.map(([, { machine }]) => [JSON.stringify(machine), machine]));
  return [...byText.values()];
}

function summary(measured: readonly Named[]): string[] {
  const judged = measured.flatMap(([name, { rows }]) =>
    rows.filter(({ met }) => met !== null).map((row) => [name, row] as const),
  );
  const missed = judged.filter(([, { met }]) => met === false);
  const count = `${judged.length - missed.length} of ${judged.length} targets are met.`;
  return [
    '## Targets',
    missed.length === 0 ? count : `${count} These are not:`,
    ...(missed.length === 0
      ? []
      : [
          table(
            ['topic', 'row', 'ratio', 'spread', 'target'],
            missed.map(([name, row]) => [
              `[${name}](#${name})`,
              row.name,
              shownRatio(row.ratio),
              shownSpread(row),
              targetOf(row),
            ]),
          ),
        ]),
  ];
}

/** The rows that are worse than at the reference commit. */
function references(measured: readonly Named[]): string[] {
  const compared = measured.flatMap(([name, { rows, against }]) =>
    rows.flatMap((row) => (row.reference && against ? [{ name, row, ref: against.ref }] : [])),
  );
  const rows = compared.filter(({ row }) => row.reference !== undefined && 'ratio' in row.reference);
  const worse = rows.filter(({ row }) => isWorse(row));
  if (compared.length === 0) {
    return [];
  }
  const lacking = compared.length - rows.length;
  const how =
    "Topics that name a commit have been measured with its package too, in the same runs: the two take turns, and both are asked by today's bench. Above 1, today is better, whether more or less of it is; a row is worse if its whole spread is below 0.95. \\* = measured by the bench of that commit, since today's does not fit to its modules.";
  const count = `${how} Rows: ${rows.length}; not comparable: ${lacking}; worse: ${worse.length === 0 ? 'none.' : `${worse.length}:`}`;
  return [
    '## Beside an earlier commit',
    count,
    ...(worse.length === 0
      ? []
      : [
          table(
            ['topic', 'row', 'commit', 'there', 'today beside it'],
            worse.map(({ name, row, ref }) => [`[${name}](#${name})`, row.name, ref, ...besideCells(row)]),
          ),
        ]),
  ];
}

function isWorse({ reference }: Row): boolean {
  return reference !== undefined && 'worse' in reference && reference.worse;
}

function besideCells(row: Row): [string, string] {
  const [value, beside] = shownBeside(row.reference, row.measured.unit);
  return [value.replace('*', '\\*'), isWorse(row) ? `${beside} **worse**` : beside];
}

function growth(measurements: Measurements): string[] {
  const drawn = pictures(measurements);
  return drawn.length === 0
    ? []
    : ['## Curves', ...drawn.map(({ alt, file }) => `![${alt.replaceAll(/[[\]]/g, '')}](images/${file})`)];
}

function shownTopic(name: string, topic: Topic | undefined, machines: readonly Machine[]): string[] {
  if (topic === undefined || !isMeasured(topic)) {
    return [`### ${name}`, `Not measured${topic === undefined ? '' : `: ${topic.notMeasured}`}.`];
  }
  const { date, runs, seconds, load, machine, against, rows, notes } = topic;
  const index = machines.findIndex((one) => JSON.stringify(one) === JSON.stringify(machine));
  const where = machines.length > 1 ? `, machine ${index + 1}` : '';
  const disturbed = load > IDLE_LOAD ? ` **Load average before: ${load.toFixed(1)}.**` : '';
  return [
    `### ${name}`,
    `${date}, ${shownRuns(runs)}, ${shownDuration(seconds)}${where}.${disturbed}`,
    ...(against === undefined ? [] : [shownAgainst(against)]),
    table(
      [
        '',
        'measured',
        '',
        'beside',
        '',
        'ratio',
        'spread',
        'target',
        'met',
        ...(against === undefined ? [] : [`at ${against.ref}`, 'today beside it']),
      ],
      rows.map((row) => [
        row.name,
        row.measured.what,
        shownValue(row.measured),
        besideOf(row),
        shownValue(row.comparedWith),
        shownRatio(row.ratio),
        shownSpread(row),
        targetOf(row),
        row.met === null ? '' : row.met ? 'yes' : '**no**',
        ...(against === undefined ? [] : besideCells(row)),
      ]),
    ),
    notes.map((note) => `- ${note}`).join('\n'),
  ];
}

function shownAgainst({ ref, hash, date, runs, load }: NonNullable<MeasuredTopic['against']>): string {
  const commit = hash.startsWith(ref) ? ref : `${ref} (${hash.slice(0, 7)})`;
  const disturbed = load > IDLE_LOAD ? ` **Load average before: ${load.toFixed(1)}.**` : '';
  return `Beside ${commit}: ${date}, ${shownRuns(runs)}.${disturbed}`;
}

function shownRuns(runs: number): string {
  return `${runs} run${runs === 1 ? '' : 's'}`;
}

function besideOf({ comparedWith: { what, peer } }: Row): string {
  return peer === undefined ? what : `${what} (${peer})`;
}

function shownSpread({ spread }: Row): string {
  return `${shownRatio(spread.min)} – ${shownRatio(spread.max)}`;
}

function targetOf({ target }: Row): string {
  return shownTarget(target).replace('<=', '≤').replace('>=', '≥');
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

function shownDuration(seconds: number): string {
  return seconds < 90 ? `${Math.round(seconds)} seconds` : `${Math.round(seconds / 60)} minutes`;
}
