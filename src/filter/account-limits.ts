/**
 * Limits of single projects and users: by id, by Keystone name, or by project tag. Ids win over names, names
 * over tags. All filters use this.
 */

import { onOneLine } from '../base/visible-text.ts';
import type { Context } from '../lease/lease.ts';
import { shownBy } from '../lease/read-only.ts';
import type { Named, RequestNames } from './verdict.ts';

/** The project or user of a request, for the lookup of limits. */
export interface Account {
  readonly kind: 'project' | 'user';
  readonly id: string;
  /** `undefined` = the Keystone name is unknown, or `[keystone] resolve_names` is false. */
  readonly named: Named | undefined;
  /** Of a project; empty if unknown. */
  readonly tags: readonly string[];
}

/** The specific limit of an account. */
export interface AccountLimit {
  /** -1 = no limit. */
  readonly limit: number;
  /** The project tag that has the limit; `undefined` = the account itself. */
  readonly tag: string | undefined;
}

const NO_TAGS: readonly string[] = [];

/** The project of a request. `names`: from the `Call` or the `Proposal`. */
export function projectOf(context: Pick<Context, 'project_id'>, names?: RequestNames): Account {
  const named = names?.project;
  return { kind: 'project', id: shownBy(context).project_id, named, tags: named?.tags ?? NO_TAGS };
}

/** The user of a request. */
export function userOf(context: Pick<Context, 'user_id'>, names?: RequestNames): Account {
  return { kind: 'user', id: shownBy(context).user_id, named: names?.user, tags: NO_TAGS };
}

/** `climate@Default`. Names are unique only in their domain. */
export function nameText({ name, domain }: Named): string {
  return domain === '' ? name : `${name}@${domain}`;
}

/** `project climate@Default (3d9b…)`, for messages; `project 3d9b…` if the name is unknown. */
export function accountText({ kind, id, named }: Account, limit?: AccountLimit): string {
  const shown = named === undefined ? id : `${onOneLine(nameText(named))} (${id})`;
  return `${kind} ${shown}${limit?.tag === undefined ? '' : ` with the tag ${onOneLine(limit.tag)}`}`;
}

/** By id, `name@domain` or tag. */
type Limits = ReadonlyMap<string, number>;

/** The limits of an option, with the limits per resource type. */
interface LimitsByType {
  readonly whole: Limits;
  readonly ofType: ReadonlyMap<string, Limits>;
}

/**
 * The limits in a filter's options. Names are case-sensitive; the last `@` separates the domain. Accounts of
 * a domain whose name contains `@` can be given only by id.
 */
export class AccountLimits {
  readonly #own: LimitsByType;
  readonly #tags: LimitsByType;

  /**
   * `own`: `id` or `name@domain` → limit, -1 = no limit. `tags`: `tag` → limit. `byType`: limits may be for
   * one resource type, as `climate/physical:host`: the part after the last slash is always a type, so an id
   * with a slash has no limit for all types.
   */
  constructor(
    own: Readonly<Record<string, number>>,
    tags: Readonly<Record<string, number>> = {},
    { byType = false }: { readonly byType?: boolean } = {},
  ) {
    this.#own = limitsOf(own, byType);
    this.#tags = limitsOf(tags, byType);
  }

  /**
   * The limit of an account, for all types or only for `resourceType`; `undefined` = it has no own limit, and
   * the general limit applies. Of several tags with a limit the strictest decides: the smallest number, and
   * -1 only if there is no other.
   */
  find(account: Account, resourceType?: string): AccountLimit | undefined {
    const limits = ofType(this.#own, resourceType);
    const own = limits?.get(account.id) ?? byName(limits, account.named);
    return own === undefined
      ? byTag(ofType(this.#tags, resourceType), account)
      : { limit: own, tag: undefined };
  }
}

/** A list of accounts in a filter's options, such as exempt accounts: `id` or `name@domain`. */
export class AccountList {
  readonly #limits: AccountLimits;

  constructor(items: readonly string[]) {
    this.#limits = new AccountLimits(Object.fromEntries(items.map((item) => [item, -1])));
  }

  /** An account with an unknown name matches only by id. */
  has(account: Account): boolean {
    return this.#limits.find(account) !== undefined;
  }
}

function limitsOf(written: Readonly<Record<string, number>>, byType: boolean): LimitsByType {
  const whole = new Map<string, number>();
  const ofTypes = new Map<string, Map<string, number>>();
  for (const [text, limit] of Object.entries(written)) {
    const slash = byType ? text.lastIndexOf('/') : -1;
    if (slash < 0) {
      whole.set(text, limit);
      continue;
    }
    const type = text.slice(slash + 1);
    const limits = ofTypes.get(type) ?? new Map<string, number>();
    ofTypes.set(type, limits.set(text.slice(0, slash), limit));
  }
  return { whole, ofType: ofTypes };
}

function ofType(limits: LimitsByType, resourceType: string | undefined): Limits | undefined {
  return resourceType === undefined ? limits.whole : limits.ofType.get(resourceType);
}

/** `a@b@c` is the project `a@b` of the domain `c`, never the project `a` of a domain `b@c`. */
function byName(limits: Limits | undefined, named: Named | undefined): number | undefined {
  return limits === undefined || named === undefined || named.domain === '' || named.domain.includes('@')
    ? undefined
    : limits.get(nameText(named));
}

function byTag(limits: Limits | undefined, { tags }: Account): AccountLimit | undefined {
  let strictest: AccountLimit | undefined;
  if (limits !== undefined && limits.size > 0) {
    for (const tag of tags) {
      const limit = limits.get(tag);
      if (limit !== undefined && (strictest === undefined || isStricter(limit, strictest.limit))) {
        strictest = { limit, tag };
      }
    }
  }
  return strictest;
}

function isStricter(limit: number, other: number): boolean {
  return limit >= 0 && (other < 0 || limit < other);
}
