import { extname } from 'node:path';
import { AskedProcess } from './harness/asked-process.ts';

/** A policy service that allows everything immediately, in a process of its own, as in production. */
export async function startExternalService(): Promise<{ url: string; stop(): Promise<void> }> {
  const main = new URL(`./external-service-server${extname(import.meta.url)}`, import.meta.url);
  const server = await AskedProcess.start('external service', main, []);
  return { url: `http://127.0.0.1:${server.ready}`, stop: () => server.stop() };
}
