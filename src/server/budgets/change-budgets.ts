/** Create, change and delete budgets: authorization, validation, messages. */

import { retold } from '../../base/errors.ts';
import { budgetUnit } from '../../enforcement/configuration.ts';
import { type Budget, formatUnitHours } from '../../filter/claim.ts';
import { secondText } from '../../lease/dates.ts';
import {
  amendBudget,
  type BeyondProject,
  type BudgetEdit,
  type BudgetEditor,
  type BudgetRefusal,
  createBudget,
  withdrawBudget,
} from '../../ledger/budgets/edits.ts';
import { amountOf, idOf, overlapText, parseBudget, secondOf } from '../../ledger/budgets/terms.ts';
import { type BudgetView, budgetById } from '../../ledger/budgets/view.ts';
import { textMistake } from '../../ledger/identity.ts';
import { ApiError } from '../api/route.ts';
import { rowNumber } from '../api/shown.ts';
import { type Action, type Caller, may, visibleProjects } from '../users/caller.ts';
import type { AmendmentInput, BudgetInput } from './inputs.ts';
import { accountId, ledgerFor, notAllowed, ownProject, type Requester } from './named-accounts.ts';

/** @throws ApiError 403, 409 (overlaps another budget), 422, LedgerUnavailableError */
export async function createBudgetFor(requester: Requester, input: BudgetInput): Promise<BudgetView> {
  const { caller } = requester;
  const ledger = await ledgerFor(requester);
  const { project_id: projectId, user_id: userId, valid_from: from, valid_until: until, amount } = input;
  const action: Action = (userId ?? null) === null ? 'set-project-budget' : 'set-user-budget';
  const project = inApi(() => idOf('projectId', projectId));
  const own = caller.kind === 'member' ? ownProject(caller, project) : undefined;
  if (!may(caller, action, own ?? project)) {
    throw notAllowed();
  }
  const reason = reasonOf(input.reason);
  // First all checks that need no request to Keystone.
  const parsed = inApi(() =>
    parseBudget({ projectId, userId, from, until, amount }, budgetUnit(requester.generation.configuration)),
  );
  const wanted = {
    ...parsed,
    projectId: own ?? (await accountId(requester, 'project', project, 'project_id')),
    userId: parsed.userId === null ? null : await accountId(requester, 'user', parsed.userId, 'user_id'),
  };
  return done(requester, await createBudget(ledger, wanted, editorOf(caller, reason), requester.deadline));
}

/** `etag`: of `If-Match`. @throws ApiError 403, 404, 409, 412, 422, 428, LedgerUnavailableError */
export async function amendBudgetFor(
  requester: Requester,
  id: string,
  etag: string,
  { amount, valid_until: until, reason: why }: AmendmentInput,
): Promise<BudgetView> {
  const budget = await changeable(requester, id);
  const version = seenVersion(etag, budget);
  const reason = reasonOf(why);
  const unit = budgetUnit(requester.generation.configuration);
  const amendment = inApi(() => ({
    amount: amount === undefined ? undefined : amountOf(amount, unit),
    validUntil: until === undefined ? undefined : secondOf('until', until),
  }));
  if (amount === undefined && until === undefined) {
    throw new ApiError(400, 'expected amount or valid_until', { field: 'amount' });
  }
  const seen = { id: budget.id, projectId: budget.projectId, version };
  const editor = editorOf(requester.caller, reason);
  return done(
    requester,
    await amendBudget(await ledgerFor(requester), seen, amendment, editor, requester.deadline),
  );
}

/** Resolves to the removed budget. @throws ApiError 403, 404, 412, 422, 428, LedgerUnavailableError */
export async function withdrawBudgetFor(
  requester: Requester,
  id: string,
  etag: string,
  why: string,
): Promise<BudgetView> {
  const budget = await changeable(requester, id);
  const seen = { id: budget.id, projectId: budget.projectId, version: seenVersion(etag, budget) };
  const author = editorOf(requester.caller, reasonOf(why));
  return done(requester, await withdrawBudget(await ledgerFor(requester), seen, author, requester.deadline));
}

/** A budget that the caller may see. @throws ApiError 404, LedgerUnavailableError */
export async function budgetFor(requester: Requester, id: string): Promise<BudgetView> {
  const ledger = await ledgerFor(requester);
  const budget = await budgetById(ledger, rowNumber(id), requester.deadline);
  const visible = visibleProjects(requester.caller);
  if (budget === undefined || visible?.includes(budget.projectId) === false) {
    throw noBudget();
  }
  return budget;
}

/** Whether the caller may change the budget: otherwise the console shows no forms. */
export function mayChange(caller: Caller, { projectId, userId }: Pick<BudgetView, 'projectId' | 'userId'>) {
  return may(caller, userId === null ? 'set-project-budget' : 'set-user-budget', projectId);
}

/** The owner of a budget never changes, so the right can be checked before the transaction. */
async function changeable(requester: Requester, id: string): Promise<BudgetView> {
  const budget = await budgetFor(requester, id);
  if (!mayChange(requester.caller, budget)) {
    throw notAllowed();
  }
  return budget;
}

function editorOf(caller: Caller, reason: string): BudgetEditor {
  return { who: caller.who, reason, isBounded: caller.kind !== 'operator' };
}

const LONGEST_REASON = 1000;
const VISIBLE = /[^\s\p{C}\p{Default_Ignorable_Code_Point}]/u;

/** @throws ApiError */
export function reasonOf(text: string): string {
  const reason = text.trim();
  const mistake = VISIBLE.test(reason)
    ? textMistake(reason, LONGEST_REASON)
    : 'expected a reason, for the history';
  if (mistake !== undefined) {
    throw new ApiError(422, mistake, { field: 'reason' });
  }
  return reason;
}

function done({ generation }: Requester, edit: BudgetEdit): BudgetView {
  if (edit.kind === 'refused') {
    throw refusalError(edit.refusal, budgetUnit(generation.configuration));
  }
  return edit.budget;
}

const FIELDS: Readonly<Record<string, string>> = {
  projectId: 'project_id',
  userId: 'user_id',
  from: 'valid_from',
  until: 'valid_until',
};

/** Rethrows a mistake with the name that its field has in the API. @throws ApiError */
export function inApi<Result>(parse: () => Result): Result {
  return retold(parse, (field, text) => new ApiError(422, text, { field: FIELDS[field] ?? field }));
}

/**
 * The version in the ETag. `*` is rejected like a missing one: it would overwrite concurrent changes.
 *
 * @throws ApiError 428 = missing; 400 = not an ETag; 412 = cannot be the ETag of a budget
 */
function seenVersion(header: string, budget: BudgetView): string {
  const field = 'If-Match';
  const text = header.trim();
  if (text === '' || text === '*') {
    throw new ApiError(428, 'expected the header If-Match with the ETag of the budget as you have seen it', {
      field,
    });
  }
  const [, weak, version] = /^(W\/)?"([\x21\x23-\x7e\x80-\xff]{0,100})"$/.exec(text) ?? [];
  if (version === undefined) {
    throw new ApiError(400, 'expected one ETag, in quotes: If-Match: "42-1796083200000000"', { field });
  }
  if (weak !== undefined) {
    const headers = { ETag: budgetEtag(budget) };
    throw new ApiError(412, 'expected a strong ETag, which does not begin with W/', { field, headers });
  }
  return version;
}

/** The strong ETag of a budget: changes with each change. */
export function budgetEtag({ version }: { readonly version: string }): string {
  return `"${version}"`;
}

export function budgetPath({ id }: Pick<Budget, 'id'>): string {
  return `/v1/budgets/${id}`;
}

function noBudget(): ApiError {
  return new ApiError(404, 'there is no such budget, or it was removed');
}

export function refusalError(refusal: BudgetRefusal, unit: string): ApiError {
  switch (refusal.kind) {
    case 'gone':
      return noBudget();
    case 'overlaps':
      return new ApiError(409, overlapText(refusal.other), {
        field: 'valid_from',
        headers: { Location: budgetPath(refusal.other) },
      });
    case 'changed':
      return new ApiError(
        412,
        `${refusal.current.changedBy} has changed the budget since; read it again, then decide`,
        { field: 'If-Match', headers: { ETag: budgetEtag(refusal.current) } },
      );
    case 'empty':
      return new ApiError(422, `expected a date after the start, ${secondText(refusal.validFrom)}`, {
        field: 'valid_until',
      });
    case 'beyond-project':
      return beyondError(refusal.beyond, unit);
  }
}

function beyondError(beyond: BeyondProject, unit: string): ApiError {
  return beyond.kind === 'uncovered'
    ? new ApiError(
        422,
        `expected a time within the budgets of the project, which has none from ${secondText(beyond.from)} until ${secondText(beyond.until)}`,
        { field: 'valid_until' },
      )
    : new ApiError(
        422,
        `expected at most the budget of the project in that time: ${formatUnitHours(beyond.most, 'down')} ${unit}`,
        { field: 'amount' },
      );
}
