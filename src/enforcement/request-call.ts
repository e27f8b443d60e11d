/** What filters are told of one request besides what it says: made for each, and its parts when somebody asks for them. */
import { hash, randomUUID } from 'node:crypto';
import type { Wait } from '../deadline.ts';
import { InvalidRequestError } from '../errors.ts';
import type { Call, Repetition } from '../filter/services.ts';
import type { Context, Lease } from '../lease/lease.ts';

export class RequestCall implements Call {
  readonly wait: Wait;
  readonly #key: string | undefined;
  readonly #said: readonly [Context, ...Lease[]];
  #requestKey: string | undefined;
  #repetition: Repetition | undefined;

  /** `idempotencyKey`: as it came with the request. `said`: what the request says. @throws InvalidRequestError */
  constructor(wait: Wait, idempotencyKey: string | undefined, said: readonly [Context, ...Lease[]]) {
    if (idempotencyKey !== undefined && !KEY.test(idempotencyKey)) {
      throw new InvalidRequestError('Idempotency-Key', 'expected 1 to 255 visible characters of ASCII');
    }
    this.wait = wait;
    this.#key = idempotencyKey;
    this.#said = said;
  }

  get signal(): AbortSignal | undefined {
    return this.wait.signal;
  }

  get requestKey(): string {
    this.#requestKey ??= this.#key ?? randomUUID();
    return this.#requestKey;
  }

  get repetition(): Repetition | undefined {
    if (this.#key !== undefined && this.#repetition === undefined) {
      this.#repetition = { key: this.#key, content: contentOf(this.#said) };
    }
    return this.#repetition;
  }
}

/** What a header can carry, and an index of a database. */
const KEY = /^[\x21-\x7e]{1,255}$/;

/** Without the ids of leases: who checks a lease before it has one may say it when it is recorded. */
function contentOf([{ user_id }, ...leases]: readonly [Context, ...Lease[]]): string {
  return hash(
    'sha256',
    JSON.stringify([user_id, leases.map((lease) => ({ ...lease, id: undefined }))]),
    'base64url',
  );
}
