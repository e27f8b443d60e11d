/** Budgets and budget requests in the configured ledger. Write access to the ledger permits every step. */
import { budgetUnit } from '../../enforcement/configuration.ts';
import { BudgetConflictError, listBudgets, removeBudget, setBudget } from '../../ledger/budgets/budgets.ts';
import { readBudgetCsv } from '../../ledger/budgets/csv.ts';
import { type ReadFile, readBudgetDocument, wantedLines } from '../../ledger/budgets/file.ts';
import { budgetHistory, pageOfChargedLeases, UNLIMITED } from '../../ledger/budgets/history.ts';
import { importBudgets, tryImport } from '../../ledger/budgets/import.ts';
import { importReport } from '../../ledger/budgets/plan.ts';
import {
  askForBudget,
  pageOfRequests,
  requestById,
  stepRequest,
} from '../../ledger/budgets/requests/requests.ts';
import type { BudgetRequest } from '../../ledger/budgets/requests/rows.ts';
import type { RequestEdit } from '../../ledger/budgets/requests/steps.ts';
import {
  amountOf,
  newIdOf,
  overlapText,
  parseBudget,
  parseBudgetKey,
  secondOf,
} from '../../ledger/budgets/terms.ts';
import { exportedBudgets } from '../../ledger/budgets/view.ts';
import { listLeases } from '../../ledger/reports/reports.ts';
import { OPEN_STATES } from '../../ledger/storage/service-tables.ts';
import { ApiError } from '../../server/api/route.ts';
import { reasonOf } from '../../server/budgets/change-budgets.ts';
import { moreThanNothing, requestError, requesterOf } from '../../server/budgets/request-budgets.ts';
import { commandNames, typedId } from '../common/command-names.ts';
import { UsageError } from '../common/output.ts';
import { Progress } from '../common/progress.ts';
import { authorOf, type LedgerAccess, NO_DEADLINE } from '../ledger/access.ts';
import { chargesOf } from './output.ts';
import { type BudgetFile, type BudgetStore, FLAGS, inFlags, noSuchBudget, warnOfNoBudget } from './store.ts';

const PAGE = 1000;

export function localBudgets({ ledger, configuration }: LedgerAccess): BudgetStore {
  const unit = budgetUnit(configuration);
  const idOf = (kind: 'project' | 'user', text: string) => typedId(configuration, kind, text);
  const ownerOf = async (project: string, user: string | undefined) => ({
    projectId: await idOf('project', project),
    userId: user === undefined ? undefined : await idOf('user', user),
  });
  const listed = async (projectId?: string) => {
    const items = await listBudgets(ledger, projectId, NO_DEADLINE);
    return { items, unit, names: await commandNames(configuration, items) };
  };
  const requested = async (items: readonly BudgetRequest[]) => ({
    items,
    unit,
    names: await commandNames(configuration, items),
  });
  const done = (edit: RequestEdit) => {
    if (edit.kind === 'refused') {
      throw requestError(edit.refusal, unit);
    }
    return requested([edit.request]);
  };
  const amountIn = (text: string) =>
    moreThanNothing(
      inFlags(() => amountOf(text, unit)),
      unit,
    );
  const untilIn = (text: string) => inFlags(() => secondOf('until', text));
  return {
    async set(project, flags) {
      const { from, until, amount } = flags;
      const owner = await ownerOf(project, flags.user);
      const wanted = inFlags(() => parseBudget({ ...owner, from, until, amount }, unit));
      try {
        await setBudget(ledger, wanted, authorOf(flags), NO_DEADLINE);
      } catch (thrown) {
        throw thrown instanceof BudgetConflictError ? new UsageError(overlapText(thrown.other)) : thrown;
      }
      return listed(owner.projectId);
    },

    async remove(project, flags) {
      const owner = await ownerOf(project, flags.user);
      const which = inFlags(() => parseBudgetKey({ ...owner, from: flags.from }));
      if ((await removeBudget(ledger, which, authorOf(flags), NO_DEADLINE)) === undefined) {
        throw noSuchBudget(which);
      }
      return listed(owner.projectId);
    },

    list: () => listed(),

    async show(project) {
      const projectId = await idOf('project', project);
      const items = await listBudgets(ledger, projectId, NO_DEADLINE);
      const open = { projectId, limit: UNLIMITED, after: undefined };
      const { items: leases } = await pageOfChargedLeases(ledger, open, NO_DEADLINE);
      if (items.length === 0) {
        const known = await listLeases(ledger, { projectId, limit: 1 }, NO_DEADLINE);
        warnOfNoBudget(projectId, known.length > 0);
      }
      const names = await commandNames(configuration, [...items, ...leases]);
      return { items, unit, names, leases: leases.map((lease) => ({ lease, charges: chargesOf(lease) })) };
    },

    async changes(project) {
      const projectId = project && (await idOf('project', project));
      return { items: await budgetHistory(ledger, projectId, NO_DEADLINE), unit };
    },

    async import(open, flags) {
      const isDryRun = flags.dryRun ?? false;
      const read = await readBudgetFile(open());
      const { wanted, mistakes } = wantedLines(await withIds(configuration, read.lines), unit);
      const all = [...read.mistakes, ...mistakes];
      const plan =
        isDryRun || all.length > 0
          ? await tryImport(ledger, wanted, NO_DEADLINE)
          : await importBudgets(ledger, wanted, authorOf(flags), NO_DEADLINE);
      const sorted = [...all, ...plan.mistakes].sort((a, b) => (a.line ?? 0) - (b.line ?? 0));
      return importReport({ lines: plan.lines, mistakes: sorted }, isDryRun);
    },

    async export(format, project) {
      const projectId = project && (await idOf('project', project));
      const query = { projectIds: projectId === undefined ? undefined : [projectId] };
      return exportedBudgets(ledger, format, query, unit);
    },

    ask: (project, flags) =>
      inFlagsOfApi(async () => {
        const { who } = authorOf(flags);
        const reason = reasonOf(flags.reason);
        const terms = { amount: amountIn(flags.amount), validUntil: untilIn(flags.until) };
        const { user } = flags;
        const wanted = {
          projectId: inFlags(() => newIdOf('projectId', project)),
          userId: user === undefined ? null : inFlags(() => newIdOf('userId', user)),
        };
        const ids = {
          projectId: await idOf('project', wanted.projectId),
          userId: wanted.userId && (await idOf('user', wanted.userId)),
        };
        const asker = { who, reason, identity: requesterOf({ identity: `ledger ${who}` }) };
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
                kind,
                isBounded: false,
                amount: amount === undefined ? undefined : amountIn(amount),
                validUntil: until === undefined ? undefined : untilIn(until),
              }
            : { kind };
        const author = { ...authorOf(flags), reason: reason === undefined ? null : reasonOf(reason) };
        return done(await stepRequest(ledger, request, step, author, NO_DEADLINE));
      }),

    async requests(project, state) {
      const projectId = project && (await idOf('project', project));
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
      return requested(items);
    },
  };
}

async function readBudgetFile({ path, text, isJson }: BudgetFile): Promise<ReadFile> {
  if (!isJson) {
    return readBudgetCsv(text);
  }
  try {
    return readBudgetDocument(JSON.parse(text));
  } catch (thrown) {
    throw new UsageError(`${path}: expected JSON: ${thrown instanceof Error ? thrown.message : ''}`);
  }
}

async function withIds(
  configuration: LedgerAccess['configuration'],
  lines: ReadFile['lines'],
): Promise<ReadFile['lines']> {
  const ids = new Map<string, string>();
  const id = async (kind: 'project' | 'user', text: unknown) => {
    if (typeof text !== 'string' || !text.includes('@')) {
      return text;
    }
    const key = `${kind} ${text}`;
    const known = ids.get(key) ?? (await typedId(configuration, kind, text));
    ids.set(key, known);
    return known;
  };
  const named: ReadFile['lines'][number][] = [];
  const progress = new Progress('lines', lines.length);
  try {
    for (const { line, values } of lines) {
      const project_id = await id('project', values.project_id);
      const user_id = await id('user', values.user_id);
      named.push({ line, values: { ...values, project_id, user_id } });
      progress.show(named.length);
    }
  } finally {
    progress.end();
  }
  return named;
}

/** Reports the errors of the API with the names of the flags. */
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
