/** What keeps sessions open: tokens of the configuration, and tokens of Keystone. */
import type { Context } from 'koa';
import { stateOf } from '../request-state.ts';
import type { FixedPerson, FixedTokens } from './fixed-tokens.ts';
import { keystonePerson } from './keystone-person.ts';
import type { Person } from './person.ts';
import type { Proof } from './sessions.ts';

/** A token of the configuration. The session ends when it is removed. */
export class FixedProof implements Proof {
  readonly identity: string;
  readonly isShared = true;
  readonly #tokens: FixedTokens;
  readonly #key: string;

  constructor(tokens: FixedTokens, { person, key }: FixedPerson) {
    this.identity = person.identity;
    this.#tokens = tokens;
    this.#key = key;
  }

  async owner(): Promise<Person | undefined> {
    return this.#tokens.byKey(this.#key);
  }
}

export interface KeystoneTokens {
  /** For a project or the system. */
  readonly scoped: string;
  /** Without a scope: for switching to another project. `undefined` = the person has logged in with a token. */
  readonly unscoped: string | undefined;
}

/** A token of Keystone. The session ends when it expires or is revoked, or when its user loses the roles that count here. */
export class KeystoneProof implements Proof {
  readonly identity: string;
  readonly isShared = false;
  readonly tokens: KeystoneTokens;

  constructor(userId: string, tokens: KeystoneTokens) {
    this.identity = `keystone ${userId}`;
    this.tokens = tokens;
  }

  /** Asks through the cache of the tokens of requests. Throws an HTTP error 503 if Keystone cannot be asked. */
  async owner(ctx: Context): Promise<Person | undefined> {
    const { options, keystone } = stateOf(ctx).generation;
    const valid = await keystone?.gate.validated(this.tokens.scoped);
    return valid && keystonePerson(valid, options);
  }
}
