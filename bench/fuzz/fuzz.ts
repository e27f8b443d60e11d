import fc from 'fast-check';
import { Pool } from 'undici';
import { errorText } from '../../src/base/errors.ts';
import type { UsageEnforcement } from '../../src/index.ts';
import { judge } from './judge.ts';
import { fuzzedRequest } from './requests.ts';
import { fuzzedBytes, judgeBytes } from './wire.ts';

/** Requests in flight at the same time. */
const TOGETHER = 25;
/** One in this many requests is sent as raw bytes that are nearly HTTP, without an HTTP client. */
const BYTES_IN = 50;

/**
 * Sends this many mutated requests to the service and compares each response with that of `enforcement`,
 * which has the same configuration. Resolves to the number sent; rejects with the smallest request whose
 * responses differ.
 */
export async function fuzz(
  url: string,
  enforcement: UsageEnforcement,
  { requests, seed }: { readonly requests: number; readonly seed: number },
): Promise<number> {
  const port = Number(new URL(url).port);
  const pool = new Pool(url, { connections: TOGETHER });
  let sent = 0;
  const together = async <Case>(
    made: fc.Arbitrary<Case>,
    count: number,
    judgeOne: (one: Case) => Promise<void>,
  ) => {
    const batch = fc.array(made, { minLength: TOGETHER, maxLength: TOGETHER });
    const property = fc.asyncProperty(batch, async (cases) => {
      sent += cases.length;
      await Promise.all(cases.map(judgeOne));
    });
    const result = await fc.check(property, { numRuns: Math.ceil(count / TOGETHER), seed });
    if (result.failed) {
      throw new Error(`with the seed ${seed}: ${errorText(result.errorInstance)}`);
    }
  };
  try {
    const bytes = Math.ceil(requests / BYTES_IN);
    await together(fuzzedRequest, requests - bytes, (request) => judge(pool, enforcement, request));
    await together(fuzzedBytes, bytes, (one) => judgeBytes(port, one));
    const health = await pool.request({ method: 'GET', path: '/healthz' });
    await health.body.dump();
    if (health.statusCode !== 200) {
      throw new Error(`expected the service to be well in the end, got ${health.statusCode}`);
    }
    return sent;
  } finally {
    await pool.destroy();
  }
}
