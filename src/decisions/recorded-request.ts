/** The request of a decision in the decision log: complete and without secrets, or omitted. */
import type { RequestNames } from '../filter/verdict.ts';
import { leastJsonLength } from '../lease/request.ts';
import { SecretValues } from '../skypilot/secrets.ts';
import type { DecidedRequest } from './lease-record.ts';

/** In characters of JSON. Enough for a lease of some hundred hosts with their allocations. */
const MAX_LENGTH = 64 * 1024;

/** Why a request is omitted. A partial or masked request could be judged differently. */
type LeftOut = 'too-long' | 'secret' | 'no-room';

/**
 * `"request":{…}` or `"request_left_out":"…"`: a member of the JSON of a record. As text, since many may be
 * queued, and their size must be known.
 */
export function requestMember(request: DecidedRequest, names: RequestNames | undefined): string {
  const { context, lease } = request;
  const current = request.current_lease ?? request.currentLease;
  const recorded = { context, lease, current_lease: current, names };
  if (leastJsonLength(recorded, MAX_LENGTH) > MAX_LENGTH) {
    return leftOut('too-long');
  }
  const text = JSON.stringify(recorded);
  if (text.length > MAX_LENGTH) {
    return leftOut('too-long');
  }
  const shown = JSON.stringify(SecretValues.of().withoutSecrets(recorded));
  return shown === text ? `"request":${text}` : leftOut('secret');
}

function leftOut(why: LeftOut): string {
  return `"request_left_out":${JSON.stringify(why)}`;
}
