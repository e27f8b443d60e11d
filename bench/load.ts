/** Callers of a server, all of them in this process. */
import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import autocannon from 'autocannon';
import { Pool } from 'undici';
import { capturedTexts } from './requests.ts';

/** Who calls at the same time when as much as possible is wanted. */
const CALLERS = 16;
/** Connections for a steady rate: so many that none is missing while the server is slow for a moment. */
const CONNECTIONS = 128;

const PATH = '/check-create';
const HEADERS = { 'content-type': 'application/json' };

/** As Blazar sends them: compact, on different days. */
const BODIES = capturedTexts().map((text) => JSON.stringify(JSON.parse(text)));

/**
 * Sends so many requests, each caller the next one as soon as it has its answer. Returns how long it took in milliseconds,
 * from the first request to the last answer. Rejects when one is not 204.
 *
 * The callers never sleep. Waking a process costs the one that writes to it, on some machines as much as a request; a
 * server that is fast enough to keep its callers busy would be spared that, and a slower one charged with each answer.
 */
export async function saturate(url: string, requests: number): Promise<number> {
  const stayAwake = awake();
  try {
    const { result, milliseconds } = await timed({
      url: url + PATH,
      connections: Math.min(CALLERS, requests),
      amount: requests,
      // How often it looks whether all of them are answered, in milliseconds.
      sampleInt: 1,
      setupClient: startingAtDifferentDays(),
    });
    if (result['2xx'] !== requests || result.errors > 0) {
      const { errors, timeouts, non2xx } = result;
      throw new Error(
        `expected ${requests} answers of 204, got ${JSON.stringify({ '2xx': result['2xx'], non2xx, errors, timeouts })}`,
      );
    }
    return milliseconds;
  } finally {
    stayAwake.stop();
  }
}

/** Its own figures begin with the making of the requests, which takes as long as hundreds of them. */
function timed(
  options: autocannon.Options & { readonly amount: number },
): Promise<{ result: autocannon.Result; milliseconds: number }> {
  return new Promise((resolve, reject) => {
    let started = Number.NaN;
    let ended = Number.NaN;
    let answers = 0;
    const load = autocannon(options, (error: unknown, result) =>
      error ? reject(error) : resolve({ result, milliseconds: ended - started }),
    );
    load.once('start', () => {
      started = performance.now();
    });
    load.on('response', () => {
      answers += 1;
      if (answers === options.amount) {
        ended = performance.now();
      }
    });
  });
}

/** Otherwise all callers would be at the same day at the same time. */
function startingAtDifferentDays(): (client: autocannon.Client) => void {
  let callers = 0;
  return (client) => {
    const first = (callers * BODIES.length) / CALLERS;
    callers += 1;
    client.setRequests(
      [...BODIES.slice(first), ...BODIES.slice(0, first)].map((body) => ({
        method: 'POST',
        path: PATH,
        headers: HEADERS,
        body,
      })),
    );
  };
}

function awake() {
  let on = true;
  const again = () => {
    if (on) {
      setImmediate(again);
    }
  };
  again();
  return {
    stop() {
      on = false;
    },
  };
}

/**
 * Sends requests at a steady rate, at random moments as independent callers do, whether or not the ones before are
 * answered. Returns how long each took in nanoseconds, from the moment that it was due: what the server, or this process,
 * is late with counts for everyone who waits behind it.
 */
export async function atRate(
  url: string,
  perSecond: number,
  milliseconds: number,
): Promise<RecordableHistogram> {
  const pool = new Pool(url, { connections: CONNECTIONS });
  const took = createHistogram();
  const failures: unknown[] = [];
  const underWay = new Set<Promise<void>>();
  const call = async (due: number, body: string | undefined) => {
    const { statusCode, body: answer } = await pool.request({
      method: 'POST',
      path: PATH,
      headers: HEADERS,
      body: body ?? null,
    });
    await answer.dump();
    took.record(Math.max(1, Math.round((performance.now() - due) * 1e6)));
    if (statusCode !== 204) {
      throw new Error(`expected 204, got ${statusCode}`);
    }
  };
  const end = performance.now() + milliseconds;
  let sent = 0;
  for (let due = performance.now(); due < end && failures.length === 0; await nextTurn()) {
    for (; due <= performance.now(); due += randomPause() / perSecond) {
      const answered: Promise<void> = call(due, BODIES[sent % BODIES.length])
        .catch((thrown) => void failures.push(thrown))
        .finally(() => underWay.delete(answered));
      underWay.add(answered);
      sent += 1;
    }
  }
  await Promise.all(underWay);
  await pool.close();
  if (failures.length > 0) {
    throw failures[0];
  }
  return took;
}

/** Milliseconds, a second on average, exponentially distributed. */
function randomPause(): number {
  return -1000 * Math.log(1 - Math.random());
}
