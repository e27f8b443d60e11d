/** Requests from files, as Blazar sends them. */
import { errorText, InvalidRequestError } from '../../base/errors.ts';
import { readText, shownName, UsageError } from './output.ts';

/** `body`: of `text`, a request of that operation. @throws UsageError */
export async function readRequest(
  file: string,
  operation: 'create' | 'update' | 'end',
  maxBytes: number,
): Promise<{ text: string; body: unknown }> {
  const { parseCreateRequest, parseEndRequest, parseUpdateRequest } = await import('../../lease/request.ts');
  const parse = { create: parseCreateRequest, update: parseUpdateRequest, end: parseEndRequest }[operation];
  const text = await readText(file, maxBytes);
  try {
    const body = JSON.parse(text) as unknown;
    parse(body);
    return { text, body };
  } catch (thrown) {
    throw new UsageError(`${shownName(file)}: ${whyNoRequest(thrown)}`);
  }
}

function whyNoRequest(thrown: unknown): string {
  if (thrown instanceof InvalidRequestError) {
    return thrown.message;
  }
  return thrown instanceof SyntaxError ? 'expected JSON' : `could not be read: ${errorText(thrown)}`;
}
