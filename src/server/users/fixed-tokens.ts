/** Those who show a token of the configuration: operators, readers, Blazar itself, which may read, and Prometheus, which reads metrics. */
import type { UserTokens } from '../authentication/credentials.ts';
import { AcceptedTokens } from '../authentication/protocols.ts';
import { type Caller, tokenCaller } from './caller.ts';

/** A caller, and what identifies the token: a session ends with it. */
interface TokenCaller {
  readonly caller: Caller;
  readonly key: string;
}

type Kind = readonly ['operator' | 'reader', string];
const OPERATOR: Kind = ['operator', 'operator token'];
const READER: Kind = ['reader', 'reader token'];
const SERVICE: Kind = ['reader', 'service token'];

export class FixedTokens {
  readonly #operator = new AcceptedTokens([]);
  readonly #reader = new AcceptedTokens([]);
  readonly #metrics = new AcceptedTokens([]);
  /** Those of Blazar's authenticator, which replaces them. */
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

  /** Whether people must show something because of these tokens. */
  get required(): boolean {
    return this.#service.required || !this.#operator.isEmpty || !this.#reader.isEmpty;
  }

  /** Whether there is a token with which somebody can log in. */
  get isEmpty(): boolean {
    return this.#service.isEmpty && this.#operator.isEmpty && this.#reader.isEmpty;
  }

  /** The owner of a token; `undefined` = it is none of these. Compared with all of them, in constant time. */
  ownerOf(token: string): TokenCaller | undefined {
    const owners = this.#lists.map(([kind, tokens]) => ({ kind, key: tokens.sessionKeyOf(token) }));
    const [owner] = owners.flatMap(({ kind, key }) =>
      key === undefined ? [] : [{ caller: tokenCaller(...kind, key), key }],
    );
    return owner;
  }

  /** The owner of a token that is still in the configuration, by its key. */
  byKey(key: string): Caller | undefined {
    const kind = this.#lists.find(([, tokens]) => tokens.sessionKeys().includes(key))?.[0];
    return kind && tokenCaller(...kind, key);
  }

  /** Whether its owner sees single budgets in the metrics. Compared with all of them, in constant time. */
  seesBudgets(token: string): boolean {
    const [forMetrics, owner] = [this.#metrics.sessionKeyOf(token), this.ownerOf(token)];
    return forMetrics !== undefined || owner !== undefined;
  }

  /** Whether it is a token of operators, readers or metrics, and none of Blazar's: Keystone must not hear of it. */
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
