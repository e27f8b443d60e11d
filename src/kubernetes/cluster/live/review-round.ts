/** Finds out which policies one account may use, by few reviews. */
import { randomUUID } from 'node:crypto';
import type { Account } from '../../policies/access.ts';
import { type AccessReviews, ALL_POLICIES } from './access-review.ts';
import { type AnswerSheet, answerSheet, chosen } from './answer-sheet.ts';
import type { UseHint } from './rbac-hint.ts';
import type { ReviewLine } from './review-line.ts';

/** With more policies, `auto` asks only about those that roles and bindings name. */
const MOST_WITHOUT_HINT = 32;
/** With fewer policies, a review about all of them saves none. */
const FEW = 3;
/** So many hinted policies are asked about together with all of them: one wait less, at most so many reviews more. */
const MOST_TOGETHER = 8;

export interface RoundTools {
  readonly reviews: AccessReviews;
  readonly line: ReviewLine;
  readonly rights: 'auto' | 'every';
  readonly hint: UseHint | undefined;
  readonly now: () => number;
}

export interface RoundQuestion {
  readonly account: Account;
  readonly names: readonly string[];
  /** An answer that is young enough to be completed. */
  readonly known: AnswerSheet | undefined;
  readonly signal: AbortSignal;
}

/** @throws SourceUnavailableError, or the reason of the signal */
export async function reviewRound(
  { reviews, line, rights, hint, now }: RoundTools,
  { account, names, known, signal }: RoundQuestion,
): Promise<AnswerSheet> {
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
    // A role with the resource name "" lets one use "all", and no policy. One with a name that nobody has is for all of them.
    if (mayUseAll === true && (await askAll([`any-${randomUUID()}`]))[0] === true) {
      return answerSheet({ asked: names, usable: names, sentAt, hintVersion });
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
  return answerSheet({ asked: names, usable: chosen(names, usable, known?.usable), sentAt, hintVersion });
}
