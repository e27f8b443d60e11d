import { createServer, type IncomingHttpHeaders, type RequestListener, type Server } from 'node:http';
import { listen } from './listening.ts';

export interface ReceivedRequest {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** The response of a third-party service: a status with a body, or any listener. */
export type Answer = { status: number; body?: string; headers?: Record<string, string> } | RequestListener;

export interface PolicyServer {
  readonly url: string;
  readonly requests: ReceivedRequest[];
  readonly server: Server;
  /** The response to the next requests. */
  answer: Answer;
}

/** A real HTTP server that records its requests, stopped after the test. */
export async function policyServer(answer: Answer): Promise<PolicyServer> {
  const requests: ReceivedRequest[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) {
      chunks.push(chunk as Buffer);
    }
    const { method, url, headers } = request;
    requests.push({ method, url, headers, body: Buffer.concat(chunks).toString() });
    if (typeof running.answer === 'function') {
      running.answer(request, response);
    } else {
      const { status, body, headers: sent } = running.answer;
      response.writeHead(status, sent).end(body);
    }
  });
  const { port } = await listen(server);
  const running: PolicyServer = { url: `http://127.0.0.1:${port}`, requests, server, answer };
  return running;
}
