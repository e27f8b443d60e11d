/** The request of a case: a body that Blazar has sent, or made from its short form. */
import { dirname, resolve } from 'node:path';
import { InvalidRequestError } from '../../base/errors.ts';
import { readTextFile, systemErrorText } from '../../config/read-file.ts';
import type { Instant } from '../../lease/dates.ts';
import { parseCreateRequest, parseUpdateRequest } from '../../lease/request.ts';
import type { ReadCase } from '../cases/case-files.ts';
import { CaseMistake } from '../cases/case-mistake.ts';
import type { LeaseCase, ShortLease } from './lease-case.ts';
import type { TriedRequest } from './lease-trial.ts';
import { changedLease, contextOf, currentLease, wholeLease } from './short-lease.ts';

/** As for the service. */
const MAX_BYTES = 16 * 1024 * 1024;

/** @throws CaseMistake */
export function requestOfCase(read: ReadCase<LeaseCase>, now: Instant): TriedRequest {
  const { request, lease, current } = read.case;
  const key = request === undefined ? 'lease' : 'request';
  const body = request === undefined ? shortBody(lease ?? {}, current, now) : capturedBody(read, request);
  const isUpdate =
    read.case.operation === undefined ? 'current_lease' in body : read.case.operation === 'update';
  try {
    return isUpdate
      ? { operation: 'update', ...parseUpdateRequest(body) }
      : { operation: 'create', ...parseCreateRequest(body) };
  } catch (thrown) {
    throw thrown instanceof InvalidRequestError
      ? CaseMistake.at(read, [key], `${key}: ${thrown.message}`)
      : thrown;
  }
}

function shortBody(short: ShortLease, current: ShortLease | undefined, now: Instant): object {
  const context = contextOf(short, current);
  if (current === undefined) {
    return { context, lease: wholeLease(short, now) };
  }
  const before = currentLease(current, now);
  return { context, current_lease: before, lease: changedLease(short, before, now) };
}

function capturedBody(read: ReadCase<LeaseCase>, request: string | object): object {
  if (typeof request !== 'string') {
    return request;
  }
  const file = resolve(dirname(read.file), request);
  let body: unknown;
  try {
    body = JSON.parse(readTextFile(file, MAX_BYTES));
  } catch (thrown) {
    const why = thrown instanceof SyntaxError ? 'expected JSON' : systemErrorText(thrown);
    throw CaseMistake.at(read, ['request'], `request: ${file}: ${why}`);
  }
  if (typeof body !== 'object' || body === null) {
    throw CaseMistake.at(read, ['request'], `request: ${file}: expected an object`);
  }
  return body;
}
