/** Callers with a configured token: operators, readers, Blazar (may read), and Prometheus (reads metrics). */
import type { UserTokens } from '../authentication/credentials.ts';
import { AcceptedTokens } from '../authentication/protocols.ts';
import { type Caller, tokenCaller } from './caller.ts';

type Kind = readonly ['operator' | 'reader', string];
const OPERATOR: Kind = ['operator', 'operator token'];
const READER: Kind = ['reader', 'reader token'];
const SERVICE: Kind = ['reader', 'service token'];

export class FixedTokens {
  readonly #operator = new AcceptedTokens([]);
  readonly #reader = new AcceptedTokens([]);
  readonly #metrics = new AcceptedTokens([]);
  /** The tokens of Blazar's authenticator, which updates them. */
  readonly #service: AcceptedTokens;

  constructor(service: AcceptedTokens, tokens: UserTokens) {
    this.#service = service;
    this.replace(tokens);
  }

  replace({ operator, reader, metrics }: UserTokens): void {
    this.#operator.replace(operator);
    this.#reader.replace(reader);
    this.#metrics.replace(metrics);
  }

  /** Whether users must authenticate because of these tokens. */
  get required(): boolean {
    return this.#service.required || !this.#operator.isEmpty || !this.#reader.isEmpty;
  }

  /** Whether no token allows a login: those for metrics do not. */
  get isEmpty(): boolean {
    return this.#service.isEmpty && this.#operator.isEmpty && this.#reader.isEmpty;
  }

  /** The owner, and the key with which its sessions end; `undefined` = unknown token. Compared with all, in constant time. */
  ownerOf(token: string): { readonly caller: Caller; readonly key: string } | undefined {
    const owners = this.#lists.map(([kind, tokens]) => ({ kind, key: tokens.sessionKeyOf(token) }));
    const [owner] = owners.flatMap(({ kind, key }) =>
      key === undefined ? [] : [{ caller: tokenCaller(...kind, key), key }],
    );
    return owner;
  }

  /** The owner of a configured token, by its key; `undefined` = it was removed. */
  byKey(key: string): Caller | undefined {
    const kind = this.#lists.find(([, tokens]) => tokens.sessionKeys().includes(key))?.[0];
    return kind && tokenCaller(...kind, key);
  }

  /** Whether the token gives access to budgets in the metrics. Compared with all tokens, in constant time. */
  seesBudgets(token: string): boolean {
    const forMetrics = this.#metrics.sessionKeyOf(token);
    const owner = this.ownerOf(token);
    return forMetrics !== undefined || owner !== undefined;
  }

  /** Whether it is a token of operators, readers or metrics, not Blazar's: never sent to Keystone. */
  isOfUsers(token: string): boolean {
    const keys = [this.#operator, this.#reader, this.#metrics].map((tokens) => tokens.sessionKeyOf(token));
    return keys.some((key) => key !== undefined);
  }

  get #lists(): readonly (readonly [Kind, AcceptedTokens])[] {
    return [
      [OPERATOR, this.#operator],
      [READER, this.#reader],
      [SERVICE, this.#service],
    ];
  }
}
