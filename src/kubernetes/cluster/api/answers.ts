/** What answers of an API server mean, and what stands in its place when something else answers. */

import { onOneLine } from '../../../base/visible-text.ts';
import { hideCredentials } from '../../../config/secret.ts';
import { isMapping, member } from '../../../yaml/tree.ts';
import { ApiError, ApiUnreachableError } from './contract.ts';

const MAX_MESSAGE = 500;
const MAX_REASON = 60;

/** Reasons of answers without a Status, by the names that Kubernetes gives them. */
const REASONS: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  409: 'Conflict',
  410: 'Gone',
  413: 'RequestEntityTooLarge',
  415: 'UnsupportedMediaType',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
};

/** The error that a Status stands for, or a body that is none. `status`: of the answer, where the Status has no code. */
export function statusError(body: unknown, status: number): ApiError {
  const said = isMapping(body) && member(body, 'kind') === 'Status' ? body : {};
  const { code, reason, message } = {
    code: member(said, 'code'),
    reason: member(said, 'reason'),
    message: member(said, 'message'),
  };
  const number = typeof code === 'number' && code >= 400 && code <= 599 ? code : status;
  const known = REASONS[number] ?? 'Unknown';
  return new ApiError(
    number,
    typeof reason === 'string' && /^[A-Za-z]+$/.test(reason) ? reason.slice(0, MAX_REASON) : known,
    typeof message === 'string' && message !== '' ? bounded(message) : `the API server answers ${number}`,
  );
}

/** The parsed body of an answer with a 2xx, or its error. */
export function parseAnswer(server: string, status: number, contentType: string, body: Buffer): unknown {
  if (status >= 300 && status < 400) {
    throw new ApiUnreachableError(
      `${server}: the answer is a redirect (${status}), which is not followed: this is not an API server`,
    );
  }
  const text = body.toString('utf8');
  const isHtml = /^\s*</.test(text.slice(0, 200)) || /html/i.test(contentType);
  const value = isHtml ? undefined : parsed(text);
  if (status >= 200 && status < 300) {
    if (value !== undefined) {
      return value;
    }
    throw new ApiUnreachableError(
      isHtml
        ? `${server}: the answer is a page of HTML: something else answers in place of the API server`
        : `${server}: the answer is ${body.length === 0 ? 'empty' : 'not JSON, or was cut off'}`,
    );
  }
  // A proxy in front of it has no Status. Its 403 or 404 says nothing about rights and kinds.
  if (isHtml) {
    throw new ApiUnreachableError(
      `${server}: the answer is a page of HTML (${status}): something else answers in place of the API server`,
    );
  }
  throw statusError(value, status);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** On one line, of limited length, without credentials. */
export function bounded(text: string): string {
  const shown = onOneLine(hideCredentials(text.slice(0, 2 * MAX_MESSAGE)));
  return shown.length > MAX_MESSAGE ? `${shown.slice(0, MAX_MESSAGE)}…` : shown;
}

/** Seconds of a Retry-After header; `undefined` if there is none. Dates, which API servers do not send, count as none. */
export function retryAfter(value: unknown): number | undefined {
  return typeof value === 'string' && /^\d{1,5}$/.test(value.trim()) ? Number(value) : undefined;
}
