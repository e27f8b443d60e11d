/** The `Call` of one request. Its parts are computed when a filter first reads them. */
import { hash, randomUUID } from 'node:crypto';
import type { Wait } from '../deadline.ts';
import { InvalidRequestError } from '../errors.ts';
import type { Call, Repetition } from '../filter/call.ts';
import type { RequestNames } from '../filter/request-names.ts';
import type { Context, Lease } from '../lease/lease.ts';

export class RequestCall implements Call {
  readonly wait: Wait;
  readonly names: RequestNames | undefined;
  readonly #idempotencyKey: string | undefined;
  readonly #request: readonly [Context, ...Lease[]];
  #requestKey: string | undefined;
  #repetition: Repetition | undefined;

  /** `idempotencyKey`: as it came with the request. `request`: all parts of it. @throws InvalidRequestError */
  constructor(
    wait: Wait,
    idempotencyKey: string | undefined,
    request: readonly [Context, ...Lease[]],
    names?: RequestNames,
  ) {
    if (idempotencyKey !== undefined && !KEY.test(idempotencyKey)) {
      throw new InvalidRequestError('Idempotency-Key', 'expected 1 to 255 visible characters of ASCII');
    }
    this.wait = wait;
    this.names = names;
    this.#idempotencyKey = idempotencyKey;
    this.#request = request;
  }

  get signal(): AbortSignal | undefined {
    return this.wait.signal;
  }

  get requestKey(): string {
    this.#requestKey ??= this.#idempotencyKey ?? randomUUID();
    return this.#requestKey;
  }

  get repetition(): Repetition | undefined {
    if (this.#idempotencyKey !== undefined && this.#repetition === undefined) {
      this.#repetition = { key: this.#idempotencyKey, content: contentOf(this.#request) };
    }
    return this.#repetition;
  }
}

/** Any such key fits into a header, and into an index of a database. */
const KEY = /^[\x21-\x7e]{1,255}$/;

/** Ids of leases are left out: a lease may have none when it is checked, and one when it is recorded. */
function contentOf([{ user_id }, ...leases]: readonly [Context, ...Lease[]]): string {
  return hash(
    'sha256',
    JSON.stringify([user_id, leases.map((lease) => ({ ...lease, id: undefined }))]),
    'base64url',
  );
}
