/** Clients of a server, all in this process. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import autocannon from 'autocannon';
import { capturedTexts } from './requests.ts';

/** The number of concurrent clients for maximum load. */
const CALLERS = 16;
/** Connections for a steady rate: enough even if the server is slow for a moment. */
const CONNECTIONS = 128;

const HEADERS = { 'content-type': 'application/json' };

/** The requests to send, in rotation. */
export interface Questions {
  readonly path: string;
  readonly bodies: readonly string[];
  /** In addition to the content type. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Some are refused, with 403. */
  readonly hasRefusals?: boolean;
  /** `[<id>]` in a body is replaced by a text unique to the request. */
  readonly hasIds?: boolean;
}

/** Compact like Blazar's, on different days. */
export const LEASES: Questions = {
  path: '/check-create',
  bodies: capturedTexts().map((text) => JSON.stringify(JSON.parse(text))),
};

const REQUESTS = LEASES.bodies.map((body) =>
  Buffer.from(
    `POST ${LEASES.path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  ),
);

/**
 * Sends requests; each client sends the next one after its response. Returns the duration in milliseconds,
 * from the first request to the last response. Rejects on a status other than 200 and 204, except for
 * permitted refusals.
 *
 * The clients never sleep. On some machines, waking a process costs its writer as much as a request; a server
 * fast enough to keep its clients busy would not pay that, and a slower one would pay it for each response.
 */
export async function saturate(
  url: string,
  requests: number,
  questions: Questions = LEASES,
): Promise<number> {
  const stayAwake = awake();
  try {
    const { result, milliseconds } = await timed({
      url: url + questions.path,
      connections: Math.min(CALLERS, requests),
      amount: requests,
      // The interval of the checks for completion, in milliseconds.
      sampleInt: 1,
      setupClient: startingAtDifferentOnes(questions),
      idReplacement: questions.hasIds === true,
    });
    const { '403': refused = { count: 0 } } = result.statusCodeStats ?? {};
    if (
      result['2xx'] + (refused.count ?? 0) !== requests ||
      result['2xx'] < requests !== (questions.hasRefusals === true) ||
      result.errors > 0
    ) {
      const { errors, timeouts, non2xx } = result;
      throw new Error(
        `expected ${requests} answers as they should be, got ${JSON.stringify({ '2xx': result['2xx'], non2xx, errors, timeouts })}`,
      );
    }
    return milliseconds;
  } finally {
    stayAwake.stop();
  }
}

/** Its own figures include the creation of the requests, which takes as long as hundreds of them. */
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

/** Otherwise all clients would send the same request at the same time. */
function startingAtDifferentOnes({ path, bodies, headers }: Questions): (client: autocannon.Client) => void {
  let callers = 0;
  return (client) => {
    const first = Math.floor((callers * bodies.length) / CALLERS);
    callers += 1;
    client.setRequests(
      [...bodies.slice(first), ...bodies.slice(0, first)].map((body) => ({
        method: 'POST',
        path,
        headers: { ...HEADERS, ...headers },
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
 * Sends requests at a steady rate, at random times like independent clients, whether or not earlier ones are
 * answered. Returns the duration of each in nanoseconds, from its due time: a delay of the server or of this
 * process counts for all requests behind it. Not counted: a warm-up, in which this process opens connections
 * and compiles code.
 */
export async function atRate(
  url: string,
  perSecond: number,
  { milliseconds, warmUp }: { readonly milliseconds: number; readonly warmUp: number },
): Promise<RecordableHistogram> {
  const callers = await Promise.all(Array.from({ length: CONNECTIONS }, () => Caller.connect(url)));
  const took = createHistogram();
  const start = performance.now();
  const counted = start + warmUp;
  const end = counted + milliseconds;
  const free = [...callers];
  const waiting: Due[] = [];
  let underWay = 0;
  const call = (caller: Caller, { due, bytes }: Due) => {
    underWay += 1;
    caller.call(bytes, () => {
      underWay -= 1;
      if (due >= counted) {
        took.record(Math.max(1, Math.round((performance.now() - due) * 1e6)));
      }
      const next = waiting.shift();
      if (next === undefined) {
        free.push(caller);
      } else {
        call(caller, next);
      }
    });
  };
  try {
    let sent = 0;
    let due = start;
    while (due < end || underWay > 0) {
      for (; due < end && due <= performance.now(); due += randomPause() / perSecond) {
        const next = { due, bytes: REQUESTS[sent % REQUESTS.length] as Buffer };
        // The one idle for the longest time: the service closes idle connections.
        const caller = free.shift();
        if (caller === undefined) {
          waiting.push(next);
        } else {
          call(caller, next);
        }
        sent += 1;
      }
      await nextTurn();
      for (const { failure } of callers) {
        if (failure !== undefined) {
          throw failure;
        }
      }
    }
    return took;
  } finally {
    for (const caller of callers) {
      caller.end();
    }
  }
}

/** A request, and its due time. */
interface Due {
  readonly due: number;
  readonly bytes: Buffer;
}

/**
 * A connection for one request at a time; expects 204. HTTP clients take as long for a request as the
 * service: at half of its rate they would be late themselves, on the other of two processors.
 */
class Caller {
  readonly #socket: Socket;
  #answered: (() => void) | undefined;
  #answer = '';
  failure: Error | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on('data', (chunk) => this.#read(chunk.toString('latin1')));
    socket.on('error', (error) => {
      this.failure = error;
    });
    socket.on('close', () => {
      this.failure ??= new Error('the connection was closed');
    });
  }

  static async connect(url: string): Promise<Caller> {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    return new Caller(socket);
  }

  call(bytes: Buffer, answered: () => void): void {
    this.#answered = answered;
    this.#socket.write(bytes);
  }

  end(): void {
    this.#socket.destroy();
  }

  #read(text: string): void {
    this.#answer += text;
    if (this.#answer.endsWith('\r\n\r\n')) {
      if (!this.#answer.startsWith('HTTP/1.1 204 ')) {
        this.failure = new Error(`expected 204, got ${this.#answer.slice(0, 100)}`);
      }
      this.#answer = '';
      this.#answered?.();
    }
  }
}

/** Milliseconds, a second on average, exponentially distributed. */
function randomPause(): number {
  return -1000 * Math.log(1 - Math.random());
}
