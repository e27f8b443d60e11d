/** Measures `test --replay` of a log, from start to exit, relative to parsing its lines as JSON. */
import { spawn } from 'node:child_process';
import { createReadStream, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Scale, Trial } from './harness/suite.ts';
import { capturedRequests, ROOT } from './requests.ts';

const LINES = 100_000;
const TIMES = 10;
const MAIN = join(ROOT, 'dist/src/cli/main.js');
const RULES = `rules:
  - name: two-days
    allow: hours(lease) <= 48.0
    message: Leases last at most 2 days.
  - name: no-gpus
    allow: reservations.all(r, property(r, 'gpu') != 'True')
    message: GPUs are not for lease.
`;
const CONFIGURATION = `[enforcement]
enabled_filters = MaxLeaseDurationFilter, RulesFilter
max_lease_duration = 1000000
rules_path = rules.yaml
`;

/** Log lines of the captured request on other days; every tenth lease is too long. */
function logLines(count: number): string {
  const [captured] = capturedRequests();
  if (captured === undefined) {
    throw new Error('there is no request');
  }
  const date = (at: number) => new Date(at).toISOString().slice(0, 19);
  const filters = ['MaxLeaseDurationFilter', 'RulesFilter'].map((filter) => ({
    filter,
    outcome: 'allowed',
    audit: false,
    message: null,
    duration_ms: 0.01,
  }));
  return Array.from({ length: count }, (_, index) => {
    const now = Date.parse('2026-11-01T00:00:00Z') + index * 1000;
    const lease = {
      ...captured.lease,
      name: `lease-${index}`,
      start_date: date(now + 3_600_000),
      end_date: date(now + 3_600_000 * (index % 10 === 0 ? 73 : 2 + (index % 40))),
    };
    const { user_id, project_id } = captured.context;
    return `${JSON.stringify({
      time: new Date(now).toISOString(),
      request_id: `req-${index}`,
      operation: 'create',
      project_id,
      user_id,
      lease_id: null,
      lease_name: lease.name,
      allowed: true,
      outcome: 'allowed',
      filter: null,
      message: null,
      failed: false,
      warnings: [],
      filters,
      generation: 1,
      duration_ms: 0.5,
      request: { context: captured.context, lease },
    })}\n`;
  }).join('');
}

/** Reports the peak memory of the process on descriptor 3, in kB. */
const TELL_MEMORY = `data:text/javascript,import{writeSync}from'node:fs';process.on('exit',()=>writeSync(3,String(process.resourceUsage().maxRSS)))`;

interface Replayed {
  readonly milliseconds: number;
  readonly peakBytes: number;
}

/** Replays the log `times` times. */
async function replayed(folder: string, lines: number, times: number): Promise<Replayed> {
  const logs = Array.from({ length: times }, () => ['--replay', 'log']).flat();
  const started = performance.now();
  const child = spawn(
    process.execPath,
    ['--import', TELL_MEMORY, MAIN, 'test', ...logs, '--config-file', 'blazar.conf', '--format', 'json'],
    { cwd: folder, stdio: ['ignore', 'pipe', 'inherit', 'pipe'] },
  );
  const [, out, , memory] = child.stdio;
  if (out === null || memory === null || memory === undefined || !('read' in memory)) {
    throw new Error('the command has no pipes');
  }
  const [printed, peak] = await Promise.all([text(out), text(memory)]);
  const milliseconds = performance.now() - started;
  const { decisions, now_refused } = JSON.parse(printed);
  if (decisions !== lines * times || now_refused !== Math.ceil(lines / 10) * times) {
    throw new Error(`the replay printed ${printed.slice(0, 300)}`);
  }
  return { milliseconds, peakBytes: Number(peak) * 1024 };
}

/** Reads the lines of the log, and parses each. */
async function parsed(path: string): Promise<number> {
  const started = performance.now();
  let begun = '';
  for await (const chunk of createReadStream(path, { encoding: 'utf8', highWaterMark: 256 * 1024 })) {
    const lines = `${begun}${chunk}`.split('\n');
    begun = lines.pop() ?? '';
    for (const line of lines) {
      JSON.parse(line);
    }
  }
  return performance.now() - started;
}

async function measure({
  quick,
  requests = quick ? 2000 : LINES * TIMES,
}: Scale): Promise<Map<string, number>> {
  const folder = mkdtempSync(join(tmpdir(), 'blazar-enforcement-replay-'));
  try {
    const lines = Math.ceil(requests / TIMES);
    const log = join(folder, 'log');
    writeFileSync(log, logLines(lines));
    writeFileSync(join(folder, 'rules.yaml'), RULES);
    writeFileSync(join(folder, 'blazar.conf'), CONFIGURATION);
    const parsing = await parsed(log);
    const short = await replayed(folder, lines, 1);
    const long = await replayed(folder, lines, TIMES);
    const nanoseconds = (milliseconds: number, all: number) => (milliseconds * 1e6) / all;
    return new Map([
      [PARSED, nanoseconds(parsing, lines)],
      [REPLAYED, nanoseconds(long.milliseconds, lines * TIMES)],
      [SHORT, short.peakBytes],
      [LONG, long.peakBytes],
    ]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const PARSED = 'JSON.parse of the lines';
const REPLAYED = 'replay of all';
const SHORT = 'peak memory, a tenth';
const LONG = 'peak memory, all';

export const trial: Trial = {
  name: 'replay',
  file: import.meta.url,
  measure,
  comparisons: [
    // 50,000 per second, where one thread parses 150,000.
    { name: 'decisions', measured: REPLAYED, comparedWith: PARSED, of: 'rate', target: { atLeast: 0.75 } },
    { name: 'peak memory', measured: LONG, comparedWith: SHORT, of: 'memory', target: { atMost: 1.2 } },
  ],
  notes: [
    `test --replay of ${(LINES * TIMES).toLocaleString('en')} decisions (--requests says another number), from start to exit: a log of a tenth of them, named ten times. Each has the captured check-create-physical-host on another day, and is judged by MaxLeaseDurationFilter and two rules; every tenth is refused. Beside it: one thread that reads the same lines and parses each.`,
    'Peak memory of the process is the largest resident set, beside a replay of the log named once.',
  ],
};
