import { setImmediate as afterEvents } from 'node:timers/promises';
import { Client, type Dispatcher } from 'undici';
import { GrowingBuffer } from '../base/growing-buffer.ts';
import { callError, endedByStrayBytes } from '../http/call-error.ts';

/** A longer response is an error, as for the filter of this package. */
const MAX_ANSWER_BYTES = 65_536;

export interface Answer {
  readonly status: number;
  /** By name in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Decoded as UTF-8, otherwise unchanged. */
  readonly body: string;
  /** Whether unannounced bytes followed it. */
  readonly strayBytes: boolean;
}

export interface NoAnswer {
  /** The URL and the reason, in one sentence. */
  readonly failure: string;
  /** Whether there was a connection, so that the service may have processed the request. */
  readonly connected: boolean;
}

/** One connection to the service. Opened by the first request; open as long as the service keeps it. */
export interface Connection {
  /** Does not follow redirects or retry. Never rejects. */
  post(url: URL, headers: Readonly<Record<string, string>>, body: string): Promise<Answer | NoAnswer>;
  close(): Promise<void>;
}

/** `timeout`: in seconds, for each request, from connecting to the last byte of its response. */
export function openConnection(origin: string, timeout: number): Connection {
  const closing = new AbortController();
  const client = new Client(origin, {
    // The signal also aborts connecting. NODE_TLS_REJECT_UNAUTHORIZED=0 would make the result meaningless.
    connect: { rejectUnauthorized: true, timeout: 0, signal: closing.signal },
    allowH2: false,
    pipelining: 1,
    maxResponseSize: MAX_ANSWER_BYTES,
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  let strayBytes = false;
  client.on('disconnect', (_origin, _targets, error) => {
    strayBytes = endedByStrayBytes(error);
  });
  const destroy = async () => {
    closing.abort();
    await client.destroy();
  };
  return {
    async post(url, headers, body) {
      const path = url.pathname + url.search;
      let connected = false;
      let expired = false;
      const timer = setTimeout(() => {
        expired = true;
        void destroy();
      }, timeout * 1000);
      try {
        const answer = await exchange(client, { path, method: 'POST', headers, body }, () => {
          connected = true;
        });
        // By now, bytes that arrived with the response have been noticed and have ended the connection.
        await afterEvents();
        return { ...answer, strayBytes };
      } catch (thrown) {
        const called = { method: 'POST', url } as const;
        const error = expired
          ? callError(
              'timeout',
              called,
              `${connected ? 'no whole answer' : 'no connection'} within ${timeout} s`,
            )
          : connected
            ? callError('transport', called, 'no usable answer', thrown)
            : callError('connect', called, 'no connection', thrown);
        return { failure: error.message, connected };
      } finally {
        clearTimeout(timer);
      }
    },
    close: destroy,
  };
}

function exchange(
  client: Client,
  request: Dispatcher.DispatchOptions,
  onConnected: () => void,
): Promise<Omit<Answer, 'strayBytes'>> {
  return new Promise((resolve, reject) => {
    let status = 0;
    let headers: Answer['headers'] = {};
    const body = new GrowingBuffer();
    const answer = () => ({ status, headers, body: body.bytes.toString('utf8') });
    client.dispatch(request, {
      onRequestStart: onConnected,
      onResponseStart(_controller, statusCode, received) {
        status = statusCode;
        headers = Object.fromEntries(Object.entries(received).map(([name, value]) => [name, String(value)]));
      },
      onResponseData(_controller, chunk) {
        body.push(chunk);
      },
      onResponseEnd() {
        resolve(answer());
      },
      onResponseError(_controller, error) {
        // Nothing may follow the head of a 204; such bytes broke the connection, not the response.
        if (status === 204) {
          resolve(answer());
        } else {
          reject(status === 0 ? error : new Error(`the answer ${status} broke off: ${error.message}`));
        }
      },
    });
  });
}
