/**
 * Blazar's external-service protocol: the filters decide about the request; the answer is 204, or 403 with the reason.
 * Source: Blazar docs, "Usage Enforcement", ExternalServiceFilter. The commits are those of StackHPC's fork.
 */
import type { IncomingMessage } from 'node:http';
import Router from '@koa/router';
import type { Context, Middleware } from 'koa';
import { type DecidedRequest, decisionRecord } from '../decisions/lease-record.ts';
import type { AskedTime } from '../decisions/recent.ts';
import type { CheckOptions } from '../enforcement/check-options.ts';
import type { UsageEnforcement } from '../enforcement/enforcement.ts';
import type { Decision, EndReport } from '../filter/verdict.ts';
import {
  type CreateRequest,
  type EndRequest,
  leaseEnd,
  leaseStart,
  type UpdateRequest,
} from '../lease/lease.ts';
import { jsonBody } from './body.ts';
import type { DecisionRecorder } from './decision-recorder.ts';
import type { Door } from './doors.ts';
import { BLAZAR_ENDPOINTS, type BlazarEndpoint, EXACT } from './own-paths.ts';
import { type RequestState, stateOf } from './request-state.ts';

/** Answers a request at one of the paths. */
export type Endpoint = (ctx: Context) => Promise<void>;

/** By path: each endpoint under `/` and `/v1`. */
export function blazarEndpoints(door: Door, recorder: DecisionRecorder): ReadonlyMap<string, Endpoint> {
  return byPath((name) => async (ctx) => {
    const state = stateOf(ctx);
    if (state.judged !== undefined) {
      answer(ctx, await state.judged);
      return;
    }
    const { deadline } = state.generation.options;
    const proof = door.requireProof(ctx);
    // Awaiting `undefined` would cost most requests a turn of the event loop.
    const left = proof === undefined ? deadline : deadline - (await secondsOf(proof));
    answer(ctx, await decide(ctx.req, state, name, await jsonBody(ctx), recorder, left));
  });
}

/** What belongs to each endpoint, by its paths. */
export function byPath<Part>(partOf: (name: BlazarEndpoint) => Part): ReadonlyMap<string, Part> {
  return new Map(
    BLAZAR_ENDPOINTS.flatMap((name) => {
      const part = partOf(name);
      return [[`/${name}`, part] as const, [`/v1/${name}`, part] as const];
    }),
  );
}

async function secondsOf(proof: Promise<void>): Promise<number> {
  const started = performance.now();
  await proof;
  return (performance.now() - started) / 1000;
}

/**
 * Waits for its turn, asks the filters of the configuration that the request arrived under, and records the decision. Throws
 * `OverloadedError` if there is no room within `seconds`, and `InvalidRequestError` if the body is not a request: nothing is recorded then.
 */
export function decide(
  asked: IncomingMessage,
  { generation, requestId, headers }: RequestState,
  name: BlazarEndpoint,
  body: unknown,
  recorder: DecisionRecorder,
  seconds: number = generation.options.deadline,
): Promise<Decision | EndReport> {
  const { enforcement, number } = generation;
  const started = performance.now();
  return generation.inTurn(async (deadline) => {
    // The protocol cannot return a changed lease: if a filter changes it, the refusal says what to ask for.
    const idempotencyKey = isCreate(name) ? idempotencyKeyOf(asked) : undefined;
    const options = { deadline, requestId, idempotencyKey, acceptsChanges: false };
    const decision = await ask(enforcement, name, body, options);
    const milliseconds = performance.now() - started;
    // The enforcement has checked that the body is a request.
    const request = body as DecidedRequest;
    const record = decisionRecord(decision, { requestId, generation: number, milliseconds, request });
    const time = record.allowed ? undefined : askedTime(request);
    const room = recorder.record(record, deadline, time, { request, names: decision.names });
    // Awaiting `undefined` would cost every decision a turn of the event loop.
    if (room !== undefined) {
      await room;
    }
    headers.push('X-Enforcement-Generation', String(number));
    return decision;
  }, seconds);
}

function ask(
  enforcement: UsageEnforcement,
  name: BlazarEndpoint,
  body: unknown,
  options: CheckOptions,
): Promise<Decision | EndReport> {
  switch (name) {
    case 'check-create':
      return enforcement.checkCreate(body as CreateRequest, options);
    case 'check-update':
      return enforcement.checkUpdate(body as UpdateRequest, options);
    case 'commit-create':
      return enforcement.commitCreate(body as CreateRequest, options);
    case 'commit-update':
      return enforcement.commitUpdate(body as UpdateRequest, options);
    case 'on-end':
      return enforcement.onEnd(body as EndRequest, options);
  }
}

/** Creating has no other identity; an update or an end names its lease. */
function isCreate(name: BlazarEndpoint): boolean {
  return name === 'check-create' || name === 'commit-create';
}

/** The end of a lease cannot be refused. */
export function refuses(decision: Decision | EndReport): decision is Decision {
  return decision.operation !== 'end' && !decision.allowed;
}

function answer(ctx: Context, decision: Decision | EndReport): void {
  if (refuses(decision)) {
    ctx.status = 403;
    ctx.body = { message: decision.message };
  } else {
    ctx.status = 204;
  }
}

/** With the quotes of the IETF draft or, as most clients send it, without. Two headers are joined to a text that is not a key. */
function idempotencyKeyOf({ headers }: IncomingMessage): string | undefined {
  const sent = headers['idempotency-key'];
  const text = Array.isArray(sent) ? sent.join(', ') : sent;
  return text === undefined ? undefined : (/^"([^"\\]*)"$/.exec(text)?.[1] ?? text);
}

/** An update need not repeat the dates that do not change. */
function askedTime({ lease, current_lease, currentLease }: DecidedRequest): AskedTime | undefined {
  const current = current_lease ?? currentLease ?? {};
  const start = leaseStart(lease) ?? leaseStart(current);
  const end = leaseEnd(lease) ?? leaseEnd(current);
  return start === undefined || end === undefined ? undefined : { start, end };
}

/** For paths in another spelling, such as with a query, and for other methods. */
export function blazarRoutes(endpoints: ReadonlyMap<string, Endpoint>): Router {
  const router = new Router(EXACT);
  for (const [path, endpoint] of endpoints) {
    router.post(path, endpoint);
  }
  return router;
}

/** Skips the router for paths in their usual spelling: routing costs as much as the decision of the filters. */
export function straightTo(endpoints: ReadonlyMap<string, Endpoint>): Middleware {
  return (ctx, next) => {
    const endpoint = ctx.req.method === 'POST' ? endpoints.get(ctx.req.url ?? '') : undefined;
    return endpoint === undefined ? next() : endpoint(ctx);
  };
}
