/** Judges a block of a log, line by line: the same in a thread as in the process of the command. */
import { MAX_LINE_BYTES } from '../../decisions/lines.ts';
import type { JudgedAgain } from './judge-again.ts';
import type { LogBlock } from './log-blocks.ts';
import { isSelected, type LogSelection } from './log-selection.ts';
import { type PastDecision, pastDecision } from './past-decision.ts';
import { type ReplayPart, ReplaySummary, type Wanted } from './replay-summary.ts';

const LINE_FEED = 0x0a;
const BLANK = /^\s*$/;

/** A line that is no decision. */
export interface DamagedLine {
  /** Within the block, from 1. */
  readonly number: number;
  readonly why: string;
}

/** Plain data: it comes from threads. */
export interface JudgedBlock {
  /** Blank and damaged ones, too. */
  readonly lines: number;
  readonly damaged: number;
  readonly firstDamaged: readonly DamagedLine[];
  readonly part: ReplayPart;
}

export type Judge = (past: PastDecision) => JudgedAgain | Promise<JudgedAgain>;

/** How many damaged lines of a log are shown. */
export const MAX_SHOWN = 10;

/** `wanted`: how many examples are still wanted. */
export async function judgeBlock(
  block: LogBlock,
  {
    judge,
    selection,
    wanted,
  }: { readonly judge: Judge; readonly selection: LogSelection; readonly wanted: Wanted },
): Promise<JudgedBlock> {
  const summary = new ReplaySummary(wanted, Number.POSITIVE_INFINITY);
  const firstDamaged: DamagedLine[] = [];
  let damaged = 0;
  let lines = 0;
  const damage = (why: string) => {
    damaged += 1;
    if (firstDamaged.length < MAX_SHOWN) {
      firstDamaged.push({ number: lines, why });
    }
  };
  if (block === undefined) {
    lines = 1;
    damage(TOO_LONG);
    return { lines, damaged, firstDamaged, part: summary.part() };
  }
  const bytes = Buffer.from(block.buffer, block.byteOffset, block.byteLength);
  for (let start = 0; start < bytes.length; ) {
    const feed = bytes.indexOf(LINE_FEED, start);
    const end = feed === -1 ? bytes.length : feed;
    lines += 1;
    if (end - start > MAX_LINE_BYTES) {
      damage(TOO_LONG);
    } else {
      const text = bytes.toString('utf8', start, end);
      const past = pastDecision(text);
      if (past === undefined) {
        if (!BLANK.test(text)) {
          damage('not a decision');
        }
      } else if (isSelected(past, selection)) {
        const judged = judge(past);
        // Most are judged at once, and to await each of them would cost a fifth of the time.
        summary.add(past, judged instanceof Promise ? await judged : judged);
      }
    }
    start = end + 1;
  }
  return { lines, damaged, firstDamaged, part: summary.part() };
}

const TOO_LONG = 'longer than 1 MiB';
