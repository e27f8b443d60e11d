/** Compares the service's responses to mutated requests with the chain's own. */
import { UsageEnforcement } from '../src/index.ts';
import type { Scale, Trial } from './harness/suite.ts';
import { CAPTURED_SECONDS } from './requests.ts';
import { ServerProcess } from './server-process.ts';

const REQUESTS = 100_000;

const SENT = 'sent';
const ANSWERED = 'answered as a direct check';

async function measure({ quick, requests = quick ? 500 : REQUESTS }: Scale): Promise<Map<string, number>> {
  // Takes a second to load, in each process that loads the topics.
  const { fuzz } = await import('./fuzz/fuzz.ts');
  const enforcement = await UsageEnforcement.load({
    environment: {},
    values: {
      enforcement: { enabled_filters: ['MaxLeaseDurationFilter'], max_lease_duration: CAPTURED_SECONDS },
    },
  });
  const service = await ServerProcess.start('service, decision log');
  try {
    const sent = await fuzz(service.url, enforcement, { requests, seed: Date.now() });
    // Ends with the first different response, and its request.
    return new Map([
      [SENT, sent],
      [ANSWERED, sent],
    ]);
  } finally {
    await service.stop();
    await enforcement.close();
  }
}

export const trial: Trial = {
  name: 'fuzz',
  file: import.meta.url,
  once: true,
  measure,
  comparisons: [
    { name: 'mutated requests', measured: ANSWERED, comparedWith: SENT, of: 'count', target: { atLeast: 1 } },
  ],
  notes: [
    `${REQUESTS.toLocaleString('en')} requests (--requests says another number), 25 at a time: captured ones, changed at random in their values, their text, their encoding, their bytes and their headers; one in fifty in the bytes of its head. What is a request must be answered as UsageEnforcement answers it, with the same message; what is none with 400, 413 or 415. The first answer that is another one ends the bench with the smallest request that brings it about.`,
  ],
};
