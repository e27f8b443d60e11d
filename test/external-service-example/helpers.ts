import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished } from 'vitest';
import { createApp } from '../../external-service-example/server.ts';
import { postJson } from '../support/post-json.ts';

export type Fields = Record<string, unknown>;
export type Answer = { status: number; text: string; headers: Headers };
export type Post = (path: string, body: unknown, headers?: Record<string, string>) => Promise<Answer>;

export function fixture(name: string): { context: Fields; lease: Fields; current_lease: Fields } {
  const url = new URL(`../fixtures/blazar-wire/${name}.json`, import.meta.url);
  return JSON.parse(readFileSync(url, 'utf8'));
}

/** The example on a port of its own until the test is over. */
export async function start(
  options: Parameters<typeof createApp>[0] = {},
): Promise<{ url: string; post: Post }> {
  const server: Server = createApp(options).listen(0, '127.0.0.1');
  onTestFinished(() => server.close().closeAllConnections());
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, post: (path, body, headers) => send(url + path, body, headers) };
}

/** Posts JSON, or a string as it is. */
export async function send(
  url: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const answer = await postJson(url, body, headers);
  return { status: answer.status, text: await answer.text(), headers: answer.headers };
}

export const messageOf = (answer: Answer): string => JSON.parse(answer.text).message;

/** A lease of one node from 1 December 00:00 UTC, in hours. */
export function leaseOf(
  hours: number,
  more: Fields = {},
  context: Fields = {},
): { context: Fields; lease: Fields } {
  const end = new Date(Date.UTC(2026, 11, 1) + hours * 3_600_000).toISOString().slice(0, -1);
  const lease = { name: 'x', start_date: '2026-12-01T00:00:00', end_date: end, reservations: [{}], ...more };
  return { context: { project_id: 'p', user_id: 'u', ...context }, lease };
}

/** What a project has left, told by the refusal of a lease that nobody could pay. */
export async function leftOf(post: Post, context: Fields = {}): Promise<number> {
  const answer = await post('/check-create', leaseOf(1_000_000, {}, context));
  expect(answer.status).toBe(403);
  return Number(/has ([\d.]+) of/.exec(messageOf(answer))?.[1]);
}
