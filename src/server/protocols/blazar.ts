/**
 * Blazar's external-service protocol: the filters decide; the response is 204, or 403 with the reason.
 * Source: Blazar docs, "Usage Enforcement", ExternalServiceFilter. The commit endpoints are those of
 * StackHPC's fork.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { type DecidedRequest, decisionRecord, requestedLeaseOf } from '../../decisions/lease-record.ts';
import type { CheckOptions } from '../../enforcement/chain/hook.ts';
import type { UsageEnforcement } from '../../enforcement/enforcement.ts';
import type { Decision, EndReport } from '../../filter/verdict.ts';
import type { CreateRequest, EndRequest, UpdateRequest } from '../../lease/lease.ts';
import type { Authenticator } from '../authentication/authenticators.ts';
import type { DecisionRecorder } from '../decisions/recorder.ts';
import { pathOf } from '../listener/connections.ts';
import { BLAZAR_ENDPOINTS, type BlazarEndpoint } from '../own-paths.ts';
import {
  type Answer,
  beginRequest,
  endRequest,
  errorAnswer,
  type RequestParts,
  type RequestState,
} from '../request-state.ts';
import { readJson } from './read-body.ts';

interface BlazarParts extends RequestParts {
  readonly authenticator: Authenticator;
  readonly recorder: DecisionRecorder;
}

/** Each endpoint is under `/` and `/v1`. */
const ENDPOINTS: ReadonlyMap<string, BlazarEndpoint> = new Map(
  BLAZAR_ENDPOINTS.flatMap((name) => [[`/${name}`, name] as const, [`/v1/${name}`, name] as const]),
);

/** Serves Blazar's endpoints; `rest` serves everything else. */
export function answerBlazar(parts: BlazarParts, rest: RequestListener): RequestListener {
  return (request, response) => {
    const path = pathOf(request);
    const endpoint = ENDPOINTS.get(path);
    if (endpoint === undefined) {
      rest(request, response);
    } else {
      void answer(request, response, endpoint, path, parts);
    }
  };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  endpoint: BlazarEndpoint,
  path: string,
  parts: BlazarParts,
): Promise<void> {
  const state = beginRequest(request, parts);
  let answer: Answer;
  try {
    // Awaited for every method: afterwards the parser knows whether a request without a body is complete.
    answer = await (request.method === 'POST'
      ? judge(request, endpoint, state, parts)
      : answerOtherMethod(request));
  } catch (thrown) {
    answer = errorAnswer(thrown, state, request, path, parts);
  } finally {
    state.generation.leave();
  }
  endRequest(state, request, answer.status, path, parts);
  send(request, response, state.headers, answer);
}

async function judge(
  request: IncomingMessage,
  endpoint: BlazarEndpoint,
  state: RequestState,
  { authenticator, recorder }: BlazarParts,
): Promise<Answer> {
  const { generation } = state;
  const { deadline, body_limit } = generation.options;
  const proof = authenticator.requireProof(request, state.address);
  const seconds = proof === undefined ? deadline : deadline - (await secondsOf(proof));
  const body = await readJson(request, body_limit);
  const decision = await decide(request, endpoint, body, state, recorder, seconds);
  return refuses(decision) ? { status: 403, body: { message: decision.message } } : { status: 204 };
}

async function secondsOf(proof: Promise<void>): Promise<number> {
  const began = performance.now();
  await proof;
  return (performance.now() - began) / 1000;
}

/**
 * Waits for room, runs the filters of the configuration under which the request arrived, and records the
 * decision.
 *
 * @throws OverloadedError if there is no room within `seconds`
 * @throws InvalidRequestError if the body is not a request: then nothing is recorded
 */
function decide(
  request: IncomingMessage,
  endpoint: BlazarEndpoint,
  body: unknown,
  { generation, requestId, headers }: RequestState,
  recorder: DecisionRecorder,
  seconds: number,
): Promise<Decision | EndReport> {
  const { enforcement, number } = generation;
  const started = performance.now();
  return generation.inTurn(async (deadline) => {
    // The end of a lease is processed even if the log is full.
    const mayWaitFirst = endpoint !== 'on-end';
    if (mayWaitFirst) {
      await recorder.room(deadline);
    }
    // The protocol cannot return a changed lease: if a filter changes it, the rejection says what to request.
    const idempotencyKey = isCreate(endpoint) ? idempotencyKeyOf(request) : undefined;
    const options = { deadline, requestId, idempotencyKey, acceptsChanges: false };
    const decision = await ask(enforcement, endpoint, body, options);
    const milliseconds = performance.now() - started;
    // The enforcement has validated the body.
    const decided = body as DecidedRequest;
    const record = decisionRecord(decision, {
      requestId,
      generation: number,
      milliseconds,
      request: decided,
    });
    const asked = record.allowed ? undefined : requestedLeaseOf(decided);
    const wait = mayWaitFirst ? undefined : deadline;
    await recorder.record(record, wait, asked, { request: decided, names: decision.names });
    headers.push('X-Enforcement-Generation', String(number));
    return decision;
  }, seconds);
}

function ask(
  enforcement: UsageEnforcement,
  endpoint: BlazarEndpoint,
  body: unknown,
  options: CheckOptions,
): Promise<Decision | EndReport> {
  switch (endpoint) {
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

/** A new lease has no other identity; an update or an end names its lease. */
function isCreate(endpoint: BlazarEndpoint): boolean {
  return endpoint === 'check-create' || endpoint === 'commit-create';
}

/** The end of a lease cannot be rejected. */
function refuses(decision: Decision | EndReport): decision is Decision {
  return decision.operation !== 'end' && !decision.allowed;
}

/** With the quotes of the IETF draft or, as usual, without. Two headers are joined to an invalid key. */
function idempotencyKeyOf({ headers }: IncomingMessage): string | undefined {
  const sent = headers['idempotency-key'];
  const text = Array.isArray(sent) ? sent.join(', ') : sent;
  return text === undefined ? undefined : (/^"([^"\\]*)"$/.exec(text)?.[1] ?? text);
}

function answerOtherMethod({ method }: IncomingMessage): Answer {
  const headers = { Allow: 'POST' };
  return method === 'OPTIONS'
    ? { status: 200, headers }
    : { status: 405, headers, body: { message: `${method} is not allowed here` } };
}

function send(
  request: IncomingMessage,
  response: ServerResponse,
  common: readonly string[],
  { status, headers, body }: Answer,
): void {
  if (response.socket?.writable === false) {
    // The client has disconnected.
    return;
  }
  const all = headers === undefined ? [...common] : [...common, ...Object.entries(headers).flat()];
  if (body === undefined) {
    if (status !== 204) {
      all.push('Content-Length', '0');
    }
    response.writeHead(status, all).end();
    return;
  }
  const json = JSON.stringify(body);
  all.push(
    'Content-Type',
    'application/json; charset=utf-8',
    'Content-Length',
    String(Buffer.byteLength(json)),
  );
  response.writeHead(status, all).end(request.method === 'HEAD' ? undefined : json);
}
