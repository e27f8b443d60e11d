/** Requests for more budget in the ledger of the configuration. Whoever may write to it may take every step. */
import { budgetUnit } from '../../enforcement/configuration.ts';
import { pageOfRequests, requestById } from '../../ledger/budgets/requests/lists.ts';
import { askForBudget, stepRequest } from '../../ledger/budgets/requests/requests.ts';
import type { BudgetRequest } from '../../ledger/budgets/requests/rows.ts';
import type { RequestEdit } from '../../ledger/budgets/requests/steps.ts';
import { amountOf, newIdOf, secondOf } from '../../ledger/budgets/terms.ts';
import { OPEN_STATES } from '../../ledger/storage/service-tables.ts';
import { ApiError } from '../../server/api/route.ts';
import { reasonOf } from '../../server/budgets/change-budgets.ts';
import { askerOf, moreThanNothing, requestError } from '../../server/budgets/request-budgets.ts';
import { commandNames, typedId } from '../common/command-names.ts';
import { UsageError } from '../common/output.ts';
import { type LedgerAccess, NO_DEADLINE, systemUser } from '../ledger/access.ts';
import type { RequestStore, StepFlags } from './requests.ts';
import { inFlags } from './store.ts';

const PAGE = 1000;

export function localRequests({ ledger, configuration }: LedgerAccess): RequestStore {
  const unit = budgetUnit(configuration);
  const listed = async (items: readonly BudgetRequest[]) => ({
    ...{ items, unit, names: await commandNames(configuration, items) },
  });
  const done = (edit: RequestEdit) => {
    if (edit.kind === 'refused') {
      throw requestError(edit.refusal, unit);
    }
    return listed([edit.request]);
  };
  const amountIn = (text: string) =>
    moreThanNothing(
      inFlags(() => amountOf(text, unit)),
      unit,
    );
  const untilIn = (text: string) => inFlags(() => secondOf('until', text));
  return {
    ask: (project, flags) =>
      inFlagsOfApi(async () => {
        const who = whoOf(flags);
        const reason = reasonOf(flags.reason);
        const terms = { amount: amountIn(flags.amount), validUntil: untilIn(flags.until) };
        const { user } = flags;
        const wanted = {
          projectId: inFlags(() => newIdOf('projectId', project)),
          userId: user === undefined ? null : inFlags(() => newIdOf('userId', user)),
        };
        const ids = {
          projectId: await typedId(configuration, 'project', wanted.projectId),
          userId: wanted.userId && (await typedId(configuration, 'user', wanted.userId)),
        };
        const asker = { who, reason, identity: askerOf({ identity: `ledger ${who}` }) };
        return done(await askForBudget(ledger, { ...ids, ...terms }, asker, NO_DEADLINE));
      }),

    take: (kind, id, flags) =>
      inFlagsOfApi(async () => {
        const request = /^\d{1,18}$/.test(id)
          ? await requestById(ledger, BigInt(id), NO_DEADLINE)
          : undefined;
        if (request === undefined) {
          throw new UsageError(`there is no request ${JSON.stringify(id)}; budget requests prints them`);
        }
        const { amount, until, reason } = flags;
        const step =
          kind === 'grant'
            ? {
                ...{ kind, isBounded: false },
                amount: amount === undefined ? undefined : amountIn(amount),
                validUntil: until === undefined ? undefined : untilIn(until),
              }
            : { kind };
        const author = { who: whoOf(flags), reason: reason === undefined ? null : reasonOf(reason) };
        return done(await stepRequest(ledger, request, step, author, NO_DEADLINE));
      }),

    async requests(project, state) {
      const projectId = project && (await typedId(configuration, 'project', project));
      const query = {
        projectIds: projectId === undefined ? undefined : [projectId],
        states: state === 'all' ? undefined : state === 'open' ? OPEN_STATES : [state],
      };
      const items: BudgetRequest[] = [];
      let after: string | undefined;
      do {
        const page = await pageOfRequests(ledger, { ...query, limit: PAGE, after }, NO_DEADLINE);
        items.push(...page.items);
        after = page.next;
      } while (after !== undefined);
      return listed(items);
    },
  };
}

function whoOf({ who }: Pick<StepFlags, 'who'>): string {
  return who ?? systemUser();
}

const FLAGS: Readonly<Record<string, string>> = {
  amount: '--amount',
  valid_until: '--until',
  user_id: '--user',
  reason: '--reason',
};

/** What the API would answer, under the name of the flag. */
async function inFlagsOfApi<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (thrown) {
    if (!(thrown instanceof ApiError)) {
      throw thrown;
    }
    const { field, message } = thrown;
    throw new UsageError(field === undefined ? message : `${FLAGS[field] ?? field}: ${message}`);
  }
}
