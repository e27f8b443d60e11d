/** Why an endpoint was of no use. */

/**
 * - `refused`: it answered that something in the request is wrong, or may not be done
 * - `failed`: it did not answer, cannot answer now, or is no service of this project
 */
export type EndpointErrorKind = 'refused' | 'failed';

/** `message` is one sentence for people; it contains no token. */
export class EndpointError extends Error {
  override readonly name = 'EndpointError';
  readonly kind: EndpointErrorKind;
  /** Of the answer; `undefined` = there was none. */
  readonly status: number | undefined;
  /** Its body, if that is JSON. */
  readonly answer: unknown;

  constructor(
    kind: EndpointErrorKind,
    message: string,
    { status, answer }: { readonly status?: number; readonly answer?: unknown } = {},
  ) {
    super(message);
    this.kind = kind;
    this.status = status;
    this.answer = answer;
  }
}
