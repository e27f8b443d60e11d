/** The process of one trial: `trial-main.js TRIAL-FILE`. Measures on request and exits with its parent. */
import type { Scale, Trial } from './suite.ts';

/** `run` is absent when the trial is loaded. */
export interface TrialMessage {
  readonly run?: readonly (readonly [string, number])[];
}

function tellParent(message: TrialMessage): void {
  process.send?.(message);
}

const [file = ''] = process.argv.slice(2);
const { trial } = (await import(file)) as { trial: Trial };
process.on('message', async (scale: Scale) => {
  tellParent({ run: [...(await trial.measure(scale))] });
});
process.on('disconnect', async () => {
  await trial.close?.();
  process.exit();
});
tellParent({});
