/** Requests from files, as Blazar sends them. */
import { errorText, InvalidRequestError } from '../../base/errors.ts';
import { depthMistake, isMapping } from '../../base/yaml/tree.ts';
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
    const body = parsedDocument(text);
    if (operation !== 'update' && isMapping(body) && body.current_lease !== undefined) {
      const expected = `expected a request of the operation ${operation}, got one of an update`;
      throw new InvalidRequestError('current_lease', expected);
    }
    parse(body);
    return { text, body };
  } catch (thrown) {
    throw new UsageError(`${shownName(file)}: ${whyNoRequest(thrown)}`);
  }
}

/** JSON of a file. @throws SyntaxError, InvalidRequestError if it is nested too deep */
export function parsedDocument(text: string): unknown {
  const value: unknown = JSON.parse(text);
  const mistake = depthMistake(value);
  if (mistake !== undefined) {
    throw new InvalidRequestError('', mistake);
  }
  return value;
}

function whyNoRequest(thrown: unknown): string {
  if (thrown instanceof InvalidRequestError) {
    return thrown.message;
  }
  return thrown instanceof SyntaxError ? 'expected JSON' : `could not be read: ${errorText(thrown)}`;
}
