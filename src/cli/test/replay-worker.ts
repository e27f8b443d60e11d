/** The thread behind `ReplayThread`. */
import { parentPort, workerData } from 'node:worker_threads';
import { errorText } from '../../errors.ts';
import { judgeAgain } from './judge-again.ts';
import { judgeBlock } from './judged-block.ts';
import { openRehearsal } from './log-run.ts';
import type { FromReplayThread, ReplayTask, ReplayThreadData } from './replay-thread.ts';

const { sources, selection, assumeRecorded } = workerData as ReplayThreadData;

function tell(message: FromReplayThread, transferred: readonly ArrayBuffer[] = []): void {
  parentPort?.postMessage(message, transferred);
}

async function start(): Promise<void> {
  const { rehearsal, notes } = await openRehearsal(sources);
  let before = Promise.resolve();
  parentPort?.on('message', ({ id, block, wanted }: ReplayTask) => {
    // One at a time: the notes are about one request.
    before = before
      .then(async () => {
        const judge = (past: Parameters<typeof judgeAgain>[0]) =>
          judgeAgain(past, rehearsal, notes, { assumeRecorded });
        const judged = await judgeBlock(block, { judge, selection, wanted });
        const buffer = block?.buffer;
        tell({ kind: 'judged', id, judged, buffer }, buffer === undefined ? [] : [buffer]);
      })
      .catch(failed);
  });
  tell({ kind: 'ready' });
}

function failed(thrown: unknown): void {
  tell({ kind: 'failed', error: errorText(thrown) });
}

await start().catch(failed);
