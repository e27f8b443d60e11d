/** Reads the decisions that a worker sends. */
import type { Readable } from 'node:stream';

const LINE_FEED = 0x0a;
/** How long to let lines gather in the system between two reads: a read for each would cost more than writing it. */
const GATHER_MS = 20;
/** A read of so many bytes was full: there is more. */
const FULL_READ = 65_536;
/** A line is far shorter. */
const MAX_LINE = 16 * 1024 * 1024;

/** Where lines go. Returns a promise if there is no room yet. */
export type TakeLines = (lines: Buffer, count: number) => Promise<void> | undefined;

/** Passes on complete lines; one that was cut off is nobody's answer. Resolves at the end of the pipe, when all lines are passed on. */
export async function readLines(pipe: Readable, take: TakeLines): Promise<void> {
  let begun: Buffer = Buffer.alloc(0);
  let taking = Promise.resolve();
  const heard = async (chunk: Buffer) => {
    const end = chunk.lastIndexOf(LINE_FEED) + 1;
    if (end === 0) {
      begun = begun.length < MAX_LINE ? Buffer.concat([begun, chunk]) : Buffer.alloc(0);
      return;
    }
    const whole = chunk.subarray(0, end);
    const lines = begun.length === 0 ? whole : Buffer.concat([begun, whole]);
    begun = Buffer.from(chunk.subarray(end));
    await take(lines, countOf(lines));
  };
  await new Promise<void>((ended) => {
    pipe.on('data', (chunk: Buffer) => {
      pipe.pause();
      taking = heard(chunk);
      void taking.then(() => {
        if (chunk.length >= FULL_READ) {
          pipe.resume();
        } else {
          atNextTick(() => pipe.resume());
        }
      });
    });
    pipe.once('close', () => ended());
    pipe.once('error', () => ended());
  });
  await taking;
}

const waiting: (() => void)[] = [];

/** Pipes are read together, whoever is first: the primary wakes once for all workers, and writes their lines at once. */
function atNextTick(read: () => void): void {
  waiting.push(read);
  if (waiting.length === 1) {
    setTimeout(() => {
      for (const one of waiting.splice(0)) {
        one();
      }
    }, GATHER_MS);
  }
}

function countOf(lines: Buffer): number {
  let count = 0;
  for (let at = lines.indexOf(LINE_FEED); at >= 0; at = lines.indexOf(LINE_FEED, at + 1)) {
    count += 1;
  }
  return count;
}
