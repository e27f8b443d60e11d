import { type DecidedRequest, type DecisionRecord, decisionRecord } from '../../decisions/record.ts';
import { errorText, InvalidRequestError } from '../../errors.ts';
import type { CreateRequest, UpdateRequest } from '../../lease/lease.ts';
import { parsedJson } from '../body.ts';
import { TooMuchJsonError } from '../json-pieces.ts';
import type { RequestState } from '../request-state.ts';

/** The operations that can be judged. The end of a lease is a notification, which has effects. */
export const OPERATIONS = ['create', 'update'] as const;
export type Operation = (typeof OPERATIONS)[number];

/**
 * Asks all filters about a request in JSON, with the bounds of a decision and without its effects: nothing is kept.
 * Throws `InvalidRequestError`, and `OverloadedError` when there is no room.
 */
export async function judge(
  { generation, requestId }: RequestState,
  operation: Operation,
  json: string,
): Promise<DecisionRecord> {
  const { enforcement, number } = generation;
  const request = await parse(json);
  const started = performance.now();
  return generation.inTurn(async (deadline) => {
    // As for Blazar, which cannot take a changed lease.
    const how = { deadline, requestId, explain: true, acceptsChanges: false, dryRun: true };
    const decision =
      operation === 'create'
        ? await enforcement.checkCreate(request as CreateRequest, how)
        : await enforcement.checkUpdate(request as UpdateRequest, how);
    const milliseconds = performance.now() - started;
    // The chain has checked that it is a valid request.
    const facts = { requestId, generation: number, milliseconds, request: request as DecidedRequest };
    return decisionRecord(decision, facts);
  });
}

async function parse(json: string): Promise<unknown> {
  try {
    return await parsedJson(Buffer.from(json));
  } catch (thrown) {
    const text = errorText(thrown);
    throw new InvalidRequestError(
      '',
      thrown instanceof TooMuchJsonError ? `expected ${text}` : `expected a request in JSON (${text})`,
    );
  }
}
