import { once } from 'node:events';
import { connect } from 'node:net';
import { text as wholeText } from 'node:stream/consumers';
import type { Service } from '../../src/server/service.ts';

/** Stops a service during a GET, which is still answered. Returns the response, head and body. */
export async function getWhileStopping(service: Service, path: string): Promise<string> {
  const { hostname, port } = new URL(service.url);
  const socket = connect(Number(port), hostname).setEncoding('utf8');
  await once(socket, 'connect');
  socket.write(`GET ${path} HTTP/1.1\r\n`);
  // Once this is answered, earlier data has been read.
  await (await fetch(`${service.url}/healthz`)).text();
  const stopped = service.close();
  socket.write('Host: x\r\n\r\n');
  const answer = await wholeText(socket);
  await stopped;
  return answer;
}
