/**
 * Answers what Blazar sends all day before Koa sees it: small requests in the usual form whose lease is allowed. Koa's part of such a
 * request costs more than the decision. Everything else is left to Koa, with what is known of it by then: nothing is decided twice.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { byPath, decide, refuses } from './blazar.ts';
import { parsedJson } from './body.ts';
import { CollectedRequest } from './collected-request.ts';
import type { DecisionRecorder } from './decision-recorder.ts';
import type { Door } from './doors.ts';
import type { Generation } from './generation.ts';
import { PIECE_BYTES } from './json-pieces.ts';
import type { Metrics } from './metrics/metrics.ts';
import type { BlazarEndpoint } from './own-paths.ts';
import { beginRequest, handOver, type RequestState } from './request-state.ts';
import { wholeBody } from './whole-body.ts';

export interface StraightParts {
  readonly door: Door;
  readonly recorder: DecisionRecorder;
  readonly metrics: Metrics;
  readonly current: () => Generation;
  readonly isDraining: () => boolean;
}

/** A listener that leaves to `rest` what it does not answer. */
export function straightAnswers(parts: StraightParts, rest: RequestListener): RequestListener {
  const endpoints = byPath((name) => name);
  return (request, response) => {
    const name = request.method === 'POST' ? endpoints.get(request.url ?? '') : undefined;
    const generation = parts.current();
    if (name !== undefined && isUsual(request, generation) && parts.door.letsPass(request)) {
      void answer(parts, name, beginRequest(request, generation), request, response, rest);
    } else {
      void rest(request, response);
    }
  };
}

/** Whether the body is JSON by its headers, not compressed, and as long as it says: Node sees to that. */
function isUsual({ headers }: IncomingMessage, { options }: Generation): boolean {
  return (
    headers['content-type'] === 'application/json' &&
    headers['content-encoding'] === undefined &&
    Number(headers['content-length']) <= Math.min(options.body_limit, PIECE_BYTES)
  );
}

async function answer(
  { recorder, metrics, isDraining }: StraightParts,
  name: BlazarEndpoint,
  state: RequestState,
  request: IncomingMessage,
  response: ServerResponse,
  rest: RequestListener,
): Promise<void> {
  const { generation, headers } = state;
  try {
    state.body = bodyOf(request);
    const body = parsedJson(await state.body);
    state.judged = decide(request, state, name, body, recorder);
    if (refuses(await state.judged)) {
      handOver(request, state);
      rest(request, response);
      return;
    }
  } catch {
    // Koa meets the same error: the body and the decision are those of the state.
    handOver(request, state);
    rest(request, response);
    return;
  }
  if (isDraining()) {
    headers.push('Connection', 'close');
  }
  generation.leave();
  metrics.answered(request.url ?? '', 204);
  if (response.socket?.writable !== false) {
    response.writeHead(204, headers).end();
  }
}

function bodyOf(request: IncomingMessage): Promise<Uint8Array> {
  const collected = request instanceof CollectedRequest ? request.collect() : undefined;
  return collected ?? wholeBody(request, PIECE_BYTES);
}
