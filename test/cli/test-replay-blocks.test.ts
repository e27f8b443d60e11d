import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { JudgedAgain } from '../../src/cli/test/judge-again.ts';
import type { LogFile } from '../../src/cli/test/log-files.ts';
import { type PastDecision, pastDecision } from '../../src/cli/test/past-decision.ts';
import { ReplayBlocks } from '../../src/cli/test/replay-blocks.ts';
import { DIFFERENCES, ReplaySummary, wantedOf } from '../../src/cli/test/replay-summary.ts';
import { MAX_LINE_BYTES } from '../../src/decisions/lines.ts';
import { aRecord } from '../support/decision-logs.ts';
import '../support/properties.ts';

const ALL = { projects: undefined, users: undefined, since: undefined, until: undefined };

/** Another answer for each name, some of them late. */
function judge({ leaseName }: PastDecision): JudgedAgain | Promise<JudgedAgain> {
  const number = Number(leaseName) % 100;
  const difference = DIFFERENCES[number % DIFFERENCES.length] ?? 'same';
  const judged = {
    difference,
    by: [`by ${number}`, 'both'],
    message: number % 7 === 0 ? null : `why ${number % 3}`,
  };
  return number % 5 === 0 ? Promise.resolve(judged) : judged;
}

/** As it is said in the documentation: line by line, with the whole log in memory. */
async function lineByLine(logs: readonly Buffer[], summary: ReplaySummary): Promise<string[]> {
  const damaged: string[] = [];
  for (const [index, log] of logs.entries()) {
    const text = log.toString('latin1');
    for (const [before, one] of text.split('\n').entries()) {
      const line = Buffer.from(one, 'latin1');
      const past = line.length > MAX_LINE_BYTES ? undefined : pastDecision(line.toString());
      if (past !== undefined) {
        summary.add(past, await judge(past));
      } else if (line.length > MAX_LINE_BYTES || !/^\s*$/.test(line.toString())) {
        const why = line.length > MAX_LINE_BYTES ? 'longer than 1 MiB' : 'not a decision';
        damaged.push(`log ${index}:${before + 1}: ${why}`);
      }
    }
  }
  return damaged;
}

function cutUp(log: Buffer, sizes: readonly number[], name: string): LogFile {
  return {
    name,
    size: log.length,
    async *chunks(read) {
      for (let at = 0, turn = 0; at < log.length; turn += 1) {
        const chunk = log.subarray(at, at + (sizes[turn % sizes.length] ?? log.length));
        read(chunk.length);
        yield chunk;
        at += chunk.length;
      }
    },
  };
}

const contentOf = (summary: ReplaySummary) => ({ ...summary.part(), causes: summary.causes });

const decision = fc
  .record({ name: fc.nat(300), second: fc.integer({ min: 10, max: 59 }) })
  .map(({ name, second }) =>
    JSON.stringify(aRecord({ lease_name: String(name), time: `2026-11-20T08:00:${second}.000Z` })),
  );
const line = fc.oneof(
  { weight: 8, arbitrary: decision },
  decision.map((text) => text.slice(0, -1)),
  fc.constantFrom('', ' \t', '[]', '\u00e9\ud83d\ude00', '{"time":1}', '\ufeff', '\u2028'),
  fc.constantFrom(-1, 0, 1, MAX_LINE_BYTES).map((more) => ' '.repeat(MAX_LINE_BYTES + more)),
  // Long enough that blocks end in the middle of a log.
  decision.map((text) => `${text}${' '.repeat(300_000)}`),
);
const log = fc
  .tuple(fc.array(line, { maxLength: 30 }), fc.boolean(), fc.boolean())
  .map(([lines, isWhole, isBroken]) =>
    Buffer.concat([
      Buffer.from(lines.join('\n')),
      Buffer.from(isBroken ? [0xff, 0x0a, 0xc3] : []),
      Buffer.from(isWhole ? '\n' : ''),
    ]),
  );

it('judges a log in blocks as it does line by line', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(log, { maxLength: 3 }),
      fc.array(fc.constantFrom(1000, 65_536, 262_144, 3_000_000), { minLength: 1, maxLength: 3 }),
      fc.nat(4),
      async (logs, sizes, examples) => {
        const wanted = wantedOf(() => examples);
        const [expected, summary] = [new ReplaySummary(wanted, 20), new ReplaySummary(wanted, 20)];
        const damaged = await lineByLine(logs, expected);
        const blocks = new ReplayBlocks(summary, {
          ...{ sources: {}, selection: ALL, assumeRecorded: false, judge, threads: 0 },
        });
        const files = logs.map((one, index) => cutUp(one, sizes, `log ${index}`));
        await blocks.judge(files, () => {});
        expect(contentOf(summary)).toEqual(contentOf(expected));
        expect(blocks.damaged).toEqual({ count: damaged.length, first: damaged.slice(0, 10) });
        expect(blocks.bytes).toBe(logs.reduce((sum, { length }) => sum + length, 0));
      },
    ),
    { numRuns: 15 },
  );
});
