/**
 * Claims: what a lease takes from limits that leases share; and the budgets that pay. Amounts of usage are
 * whole numbers: 1 is a millionth of a unit for one second; an hour of one unit, such as a node-hour, is 3.6
 * thousand million. Sums, differences and parts of a lease are exact.
 */
import { type Instant, MICROSECONDS_PER_SECOND } from '../lease/dates.ts';
import type { Context, Lease, Reservation } from '../lease/lease.ts';
import { isVerdict, type Rejection, type RequestNames, type Verdict } from './verdict.ts';

/** What the leases of a project, or of one user in it, may use in a period. */
export interface Budget {
  readonly id: bigint;
  readonly projectId: string;
  /** `null` = for the whole project. */
  readonly userId: string | null;
  /** In seconds of the epoch. */
  readonly validFrom: bigint;
  /** The first second after the period. */
  readonly validUntil: bigint;
  readonly amount: Amount;
}

/** Prefix of account names of budgets. */
export const BUDGET_ACCOUNT = 'usage_budget/';

/** The account charged for leases that this budget pays for. */
export function budgetAccount({ id }: Pick<Budget, 'id'>): string {
  return `${BUDGET_ACCOUNT}${id}`;
}

/** The id of the budget with this account; `undefined` = not a budget's account. */
export function budgetIdOf(account: string): bigint | undefined {
  const id = /^usage_budget\/(\d{1,18})$/.exec(account)?.[1];
  return id === undefined ? undefined : BigInt(id);
}

/** The second that contains an instant. */
export function floor(instant: Instant): bigint {
  return instant / MICROSECONDS_PER_SECOND;
}

/** The first second that starts at or after an instant. */
export function ceil(instant: Instant): bigint {
  return (instant + MICROSECONDS_PER_SECOND - 1n) / MICROSECONDS_PER_SECOND;
}

export function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

export function smaller(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

/** For usage: millionths of a unit, times seconds. For held claims: the count. */
export type Amount = bigint;

const MICRO_DIGITS = 6;
const MICRO = 10n ** BigInt(MICRO_DIGITS);
const SECONDS_PER_HOUR = 3600n;
const UNIT_HOUR: Amount = MICRO * SECONDS_PER_HOUR;

/** The largest number that both databases hold exactly: more than 2,500 million unit-hours. */
export const MAX_AMOUNT: Amount = 2n ** 63n - 1n;

const DECIMAL = /^(\d{1,15})(?:\.(\d{1,6})0*)?$/;

/**
 * `2.5` → 2500000: a decimal number, 0 or more, in millionths. `undefined` for all else, and more than six
 * decimals.
 */
export function parseMillionths(text: string): bigint | undefined {
  const match = DECIMAL.exec(text.trim());
  if (match === null) {
    return undefined;
  }
  const [, whole = '0', fraction = ''] = match;
  return BigInt(whole) * MICRO + BigInt(fraction.padEnd(MICRO_DIGITS, '0'));
}

/** Parses a budget as written by an operator: `1000` unit-hours. `undefined` = invalid or too large. */
export function parseUnitHours(text: string): Amount | undefined {
  const millionths = parseMillionths(text);
  const amount = millionths === undefined ? undefined : millionths * SECONDS_PER_HOUR;
  return amount === undefined || amount > MAX_AMOUNT ? undefined : amount;
}

/** In unit-hours, as the nearest JavaScript number. */
export function unitHours(amount: Amount): number {
  return Number(amount) / Number(UNIT_HOUR);
}

const SHOWN_DIGITS = 4;

/**
 * In unit-hours, with up to four decimals. Round costs up and remaining amounts down: a message must not
 * suggest that a lease fits if it does not.
 */
export function formatUnitHours(amount: Amount, rounding: 'up' | 'down' = 'up'): string {
  const scale = 10n ** BigInt(SHOWN_DIGITS);
  const sign = amount < 0n ? '-' : '';
  const scaled = (amount < 0n ? -amount : amount) * scale;
  const roundsUp = (rounding === 'up') === amount >= 0n;
  const rounded = (scaled + (roundsUp ? UNIT_HOUR - 1n : 0n)) / UNIT_HOUR;
  const fraction = String(rounded % scale)
    .padStart(SHOWN_DIGITS, '0')
    .replace(/0+$/, '');
  const text = `${rounded / scale}${fraction === '' ? '' : `.${fraction}`}`;
  return text === '0' ? text : `${sign}${text}`;
}

/** Usage in unit-hours; what is held, such as a count of leases, as a number. */
export function chargeText(kind: 'usage' | 'held', value: Amount, rounding: 'up' | 'down' = 'up'): string {
  return kind === 'usage' ? formatUnitHours(value, rounding) : String(value);
}

/** A lease as it would be if allowed. */
export interface Proposal {
  readonly context: Context;
  readonly start: Instant;
  readonly end: Instant;
  /** All reservations, including those that an update omits. */
  readonly reservations: readonly Reservation[];
  /**
   * Whether a reservation that is the only one of its type gets exactly the allocations that it names.
   * `false`: it may get others, because Blazar searches for hosts again.
   */
  readonly allocationsAreExact: boolean;
  /** As in the `Call`: missing unless `[keystone] resolve_names` is true, and when the ledger follows Blazar. */
  readonly names?: RequestNames | undefined;
  /**
   * The leases of the request. Missing for an existing lease: the current lease of an update, or one from a
   * list of Blazar.
   */
  readonly request?: { readonly lease: Lease; readonly currentLease?: Lease | undefined } | undefined;
  /** Whether each reservation names its own allocations, even if several have the same type. Default: no. */
  readonly allocationsAreByReservation?: boolean;
}

/** The state of the project when the claims are computed. */
export interface ProjectState {
  readonly now: Instant;
  /** Budgets of the project, and of the user in it, for any period. */
  readonly budgets: readonly Budget[];
  /** Only for a `SharedLimit` that `readsProject`. */
  readonly others?: OtherLeases | undefined;
}

/** What the project's other leases take, as seen by the transaction that records the lease. */
export interface OtherLeases {
  /** How many are pending or active. SkyPilot clusters are not counted. */
  readonly count: bigint;
  /** What they take of a project budget. */
  readonly takenOf: (budget: Budget) => Amount;
}

/** The figures behind a refusal. */
export interface Shortage {
  /** What the lease would take. For an update: what it would take in addition. */
  readonly asked: Amount;
  /** What is available, 0 or more. */
  readonly left: Amount;
  /** What other leases have taken. */
  readonly taken: Amount;
  /** Whether an existing lease would grow. */
  readonly isUpdate: boolean;
}

/**
 * How exact the amount of a claim is before the lease exists, when Blazar has not chosen its hosts.
 * `at-most`: it may decrease. `about`: it may change either way, since it depends on attributes that are
 * still unknown.
 */
export type Precision = 'exact' | 'at-most' | 'about';

interface AnyClaim {
  /** Unique within the project. Starts with the prefix of the filter: `max_leases/project`. */
  readonly account: string;
  /** The lease may not raise the account above this. `undefined` = no limit: the claim is only counted. */
  readonly limit: Amount | undefined;
  /** For estimates. Default: exact. */
  readonly precision?: Precision;
  /** The message for the user if the limit would be exceeded. */
  refuse(shortage: Shortage): string;
}

/**
 * Counts from the moment the lease is recorded until it ends, even if it starts next month. So the limit is
 * an upper bound over all pending and active leases of the account: two leases count together, even if one
 * starts after the other has ended. A held claim can express "at most ten pending or active leases", but not
 * "at most ten distinct hosts in use at once".
 */
export interface HeldClaim extends AnyClaim {
  readonly kind: 'held';
  readonly amount: Amount;
}

/** Used up over time, such as node-hours. Unused amounts are returned when the lease ends. */
export interface UsageClaim extends AnyClaim {
  readonly kind: 'usage';
  readonly perSecond: Amount;
  /** In seconds of the epoch. */
  readonly from: bigint;
  readonly until: bigint;
}

export type Claim = HeldClaim | UsageClaim;

/** The claims of a lease, or `reject('why')` if the request lacks what is needed to compute them. */
export type Claims = readonly Claim[] | Rejection;

/** Of one filter for one lease. More would hold the process for a second. */
const MAX_CLAIMS = 10_000;

const CLAIM_NAMES = {
  held: new Set(['kind', 'account', 'amount', 'limit', 'precision', 'refuse']),
  usage: new Set(['kind', 'account', 'perSecond', 'from', 'until', 'limit', 'precision', 'refuse']),
};

/**
 * What `claims` returned, if it is that. A rejection without a text, or a mistyped `limit`, would otherwise
 * let the lease through. @throws TypeError
 */
export function requireClaims(returned: unknown): Claims {
  if (isVerdict(returned) && !returned.allowed) {
    return returned;
  }
  if (!Array.isArray(returned)) {
    throw new TypeError('claims returned neither a list of claims nor reject(message)');
  }
  if (returned.length > MAX_CLAIMS) {
    throw new TypeError(`claims returned ${returned.length} claims; expected at most ${MAX_CLAIMS}`);
  }
  for (const claim of returned) {
    const mistake = mistakeIn((claim ?? {}) as { readonly [name: string]: unknown });
    if (mistake !== undefined) {
      throw new TypeError(`claims returned a claim that cannot be used: ${mistake}`);
    }
  }
  return returned;
}

/** Not by a table of types, which takes a microsecond more for each claim of a lease. */
function mistakeIn(claim: { readonly [name: string]: unknown }): string | undefined {
  const { kind, account, limit, refuse, from, until } = claim;
  if (kind !== 'held' && kind !== 'usage') {
    return 'expected the kind held or usage';
  }
  for (const name in claim) {
    if (!CLAIM_NAMES[kind].has(name)) {
      return `it has no ${name}`;
    }
  }
  if (typeof account !== 'string' || typeof refuse !== 'function') {
    return 'expected a text as account, and a function refuse';
  }
  if (limit !== undefined && typeof limit !== 'bigint') {
    return 'expected a bigint as limit';
  }
  const amount = kind === 'held' ? claim.amount : claim.perSecond;
  if (typeof amount !== 'bigint' || amount < 0n) {
    return `expected a bigint, 0 or more, as ${kind === 'held' ? 'amount' : 'perSecond'}`;
  }
  return kind === 'held' || (typeof from === 'bigint' && typeof until === 'bigint' && from <= until)
    ? undefined
    : 'expected a bigint as from, and one that is not before it as until';
}

/** What the filter says of a shortage. @throws TypeError if it says nothing, which would let the lease through */
export function refusalOf(claim: Claim, shortage: Shortage): string {
  const message: unknown = claim.refuse(shortage);
  if (typeof message !== 'string' || message === '') {
    throw new TypeError('refuse returned no text');
  }
  return message;
}

/** A limit that leases share: the part of a `LedgerFilter` that the ledger calls. */
export interface SharedLimit {
  /** As in `LedgerFilter`. */
  claims(proposal: Proposal, state: ProjectState): Claims;
  /** Whether it needs the project's other leases. Default: no, since they cost a query. */
  readonly readsProject?: boolean;
  /**
   * For past requests, if the contents of the ledger are unknown: the verdict if it does not depend on them;
   * `undefined` = it does. Default: it always does.
   */
  readonly regardless?: () => Verdict | undefined;
}
