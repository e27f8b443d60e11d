/** The API server's answers about one account, from few reviews, and their lifetime. */
import { randomUUID } from 'node:crypto';
import type { Account } from '../../policies/access.ts';
import { isSameList } from '../../policies/merge.ts';
import { type AccessReviews, ALL_POLICIES, type ReviewLine } from './access-review.ts';
import type { UseHint } from './rbac-hint.ts';

/** No answer is used later than this after its review was sent. */
export const LIFETIME_MILLISECONDS = 10_000;
/** From this age on the next answer is fetched, while this one is used. */
const REJUST_SENT_MS = 7000;
/** An older answer is not completed with reviews of further policies: all are reviewed again. */
const JUST_SENT_MS = 5000;
/** How long another API server's authorizer may still use the old state after a binding has changed. */
const SETTLING_MILLISECONDS = 1000;

/** One answer for a whole list of names, as old as its oldest review. */
export interface PermissionAnswers {
  /** The names that were asked about: shared by all accounts, so that the answers of an account are small. */
  readonly asked: readonly string[];
  /** The same array while the answer does not change. `asked` = all of them. */
  readonly usable: readonly string[];
  readonly sentAt: number;
  readonly refreshAt: number;
  expiresAt: number;
  /** The hint's version used for `expiresAt`. */
  hintVersion: number;
}

function permissionAnswers(
  parts: Pick<PermissionAnswers, 'asked' | 'usable' | 'sentAt' | 'hintVersion'>,
): PermissionAnswers {
  return {
    ...parts,
    refreshAt: parts.sentAt + REJUST_SENT_MS,
    expiresAt: parts.sentAt + LIFETIME_MILLISECONDS,
  };
}

/** Whether it is still valid. A changed binding ends it earlier. */
export function isFresh(
  answers: PermissionAnswers,
  account: Account,
  hint: UseHint | undefined,
  now: number,
): boolean {
  if (hint !== undefined && answers.hintVersion !== hint.version) {
    answers.hintVersion = hint.version;
    const changedAt = hint.changedAt(account);
    if (answers.sentAt <= changedAt) {
      answers.expiresAt = Number.NEGATIVE_INFINITY;
    } else if (answers.sentAt < changedAt + SETTLING_MILLISECONDS) {
      answers.expiresAt = Math.min(answers.expiresAt, changedAt + SETTLING_MILLISECONDS);
    }
  }
  return now < answers.expiresAt;
}

export function isJustSent({ sentAt }: PermissionAnswers, now: number): boolean {
  return now - sentAt < JUST_SENT_MS;
}

/** Its answer for other names; `undefined` = some were not asked about. */
export function answerFor(
  answers: PermissionAnswers,
  names: readonly string[],
): PermissionAnswers | undefined {
  if (isSameList(answers.asked, names)) {
    return { ...answers, asked: names, usable: answers.usable === answers.asked ? names : answers.usable };
  }
  const asked = new Set(answers.asked);
  return names.every((name) => asked.has(name))
    ? { ...answers, asked: names, usable: chosen(names, new Set(answers.usable), answers.usable) }
    : undefined;
}

/** The names in the set, as the existing array if it has the same ones. */
function chosen(
  names: readonly string[],
  usable: ReadonlySet<string>,
  before: readonly string[] = [],
): readonly string[] {
  const list = names.filter((name) => usable.has(name));
  return [names, before].find((one) => isSameList(one, list)) ?? list;
}

/** With more policies, `auto` reviews only those in roles and bindings. */
export const MOST_WITHOUT_HINT = 32;
/** With fewer policies, one review of all saves none. */
const FEW = 3;
/**
 * Up to this many hinted policies are reviewed together with all: saves one wait, costs at most this many
 * reviews.
 */
const MOST_TOGETHER = 8;

export interface ReviewTools {
  readonly reviews: Pick<AccessReviews, 'mayUse'>;
  readonly line: ReviewLine;
  readonly rights: 'auto' | 'every';
  readonly hint: UseHint | undefined;
  readonly now: () => number;
}

export interface ReviewQuestion {
  readonly account: Account;
  readonly names: readonly string[];
  /** An answer that is young enough to be completed. */
  readonly known: PermissionAnswers | undefined;
  readonly signal: AbortSignal;
}

/** @throws SourceUnavailableError, or the reason of the signal */
export async function reviewPolicies(
  { reviews, line, rights, hint, now }: ReviewTools,
  { account, names, known, signal }: ReviewQuestion,
): Promise<PermissionAnswers> {
  const hintVersion = hint?.version ?? 0;
  const sentAt = Math.min(now(), known?.sentAt ?? Number.POSITIVE_INFINITY);
  const askAll = (list: readonly string[]) =>
    line.all(list, (name) => reviews.mayUse(account, name, signal), signal);
  const asked = new Set(known?.asked);
  const unknown = names.filter((name) => !asked.has(name));
  const hinted =
    rights === 'auto' && names.length > MOST_WITHOUT_HINT ? hint?.candidates(account, unknown) : undefined;
  const candidates = hinted ?? unknown;
  const together = hinted !== undefined && hinted.length <= MOST_TOGETHER ? hinted : [];
  let answers: readonly boolean[] = [];
  if (rights === 'auto' && unknown.length >= FEW) {
    const [mayUseAll, ...others] = await askAll([ALL_POLICIES, ...together]);
    // A role with the resource name "" allows "all", but no policy. A random name is allowed only by roles
    // for all names.
    if (mayUseAll === true && (await askAll([`any-${randomUUID()}`]))[0] === true) {
      return permissionAnswers({ asked: names, usable: names, sentAt, hintVersion });
    }
    answers = others;
  }
  if (answers.length < candidates.length) {
    answers = await askAll(candidates);
  }
  const usable = new Set(known?.usable);
  candidates.forEach((name, index) => {
    if (answers[index] === true) {
      usable.add(name);
    }
  });
  return permissionAnswers({
    asked: names,
    usable: chosen(names, usable, known?.usable),
    sentAt,
    hintVersion,
  });
}
