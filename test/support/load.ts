/** Clients that send one request after the other, as fast as they get responses. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import { createLasting } from './requests.ts';

interface LoadAnswer {
  /** The request id that was sent. */
  readonly id: string;
  readonly status: number;
  /** `X-Enforcement-Generation`; `NaN` without one. */
  readonly generation: number;
  readonly message: string | undefined;
}

/** Keep-alive connections with one request at a time each. */
export function startLoad(url: string, connections: number, body: string) {
  const answers: LoadAnswer[] = [];
  const failures: { readonly id: string; readonly code: string | undefined }[] = [];
  let stopped = false;
  const ask = async (agent: Agent): Promise<void> => {
    while (!stopped) {
      const id = `req-${randomUUID()}`;
      try {
        answers.push(await post(url, agent, id, body));
      } catch (thrown) {
        const code = (thrown as NodeJS.ErrnoException).code;
        if (code === 'ECONNREFUSED') {
          return;
        }
        failures.push({ id, code });
      }
    }
  };
  const agents = Array.from({ length: connections }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
  const refused = Promise.all(agents.map(ask)).then(() => {});
  const stop = () => {
    stopped = true;
    return refused;
  };
  onTestFinished(async () => {
    await stop();
    for (const agent of agents) {
      agent.destroy();
    }
  });
  return {
    answers,
    /** Requests without a response. */
    failures,
    /** Resolves when connections are refused and no client is left. */
    refused,
    /** Stops sending; waits for the running requests. */
    stop,
    /** Waits for this number of further responses. */
    more: async (count: number) => {
      const enough = answers.length + count;
      while (answers.length < enough && !stopped) {
        await new Promise((soon) => setTimeout(soon, 5));
      }
    },
  };
}

async function post(url: string, agent: Agent, id: string, body: string): Promise<LoadAnswer> {
  const headers = {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
    'X-Openstack-Request-Id': id,
  };
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    request(url, { method: 'POST', agent, headers }).on('response', resolve).on('error', reject).end(body);
  });
  const answered = await text(answer);
  return {
    id,
    status: answer.statusCode ?? 0,
    generation: Number(answer.headers['x-enforcement-generation'] ?? Number.NaN),
    message: answered === '' ? undefined : (JSON.parse(answered) as { message?: string }).message,
  };
}

/** Limit of outstanding responses on a connection: beyond it, the service closes the connection. */
const MOST_OWED = 8;

/** Sends `count` creates over some connections, pipelined. Returns the number of responses of each status. */
export async function flood(port: number, count: number, connections = 8): Promise<Record<string, number>> {
  const body = JSON.stringify(createLasting(60));
  const head = `POST /check-create HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
  const texts = await Promise.all(
    Array.from({ length: connections }, async () => {
      const socket = connect(port, '127.0.0.1').setEncoding('utf8');
      let left = count / connections;
      const send = (most: number) => {
        const now = Math.min(left, most);
        left -= now;
        socket.write(`${head}\r\n${body}`.repeat(left > 0 ? now : Math.max(0, now - 1)));
        if (left === 0 && now > 0) {
          socket.write(`${head}Connection: close\r\n\r\n${body}`);
        }
      };
      send(MOST_OWED);
      let read = '';
      socket.on('data', (text: string) => {
        const before = Math.max(0, read.length - 'HTTP/1.1'.length + 1);
        read += text;
        const more = read.slice(before).split('HTTP/1.1').length - 1;
        send(more);
      });
      await once(socket, 'close');
      return read;
    }),
  );
  const statuses: Record<string, number> = {};
  for (const [, status = ''] of texts.join('').matchAll(/HTTP\/1\.1 (\d+) /g)) {
    statuses[status] = (statuses[status] ?? 0) + 1;
  }
  return statuses;
}
