/** `budget … --endpoint`: what each command does and prints, as on the ledger itself. */
import type { ApiClient } from '../../client/client.ts';
import { EndpointError } from '../../client/endpoint-error.ts';
import { budgetAmountText, dateText, whoseText } from '../../ledger/budgets/format.ts';
import { parseBudget, parseBudgetKey } from '../../ledger/budgets/terms.ts';
import { onOneLine, printJson, UsageError } from '../output.ts';
import { openBudgetFile, printImport } from './files.ts';
import { type AuthorFlags, type FormatFlags, type ImportFlags, inFlags, type SetFlags } from './flags.ts';
import { budgetStandingObject, changeObject, printBudgets, printChanges, printShown } from './output.ts';
import {
  namesOf,
  type RemoteKey,
  remoteBudget,
  remoteBudgets,
  remoteChanges,
  remoteCharges,
  remoteExport,
  remoteImport,
} from './remote.ts';

type Api = ApiClient['api'];

/** Somebody else may change the budget between reading and writing: it is read again. */
const ATTEMPTS = 3;
const AGAIN = [404, 409, 412];

export async function setRemotely(api: Api, project: string, flags: SetFlags): Promise<void> {
  const reason = reasonOf(flags);
  const { from, until, amount, user: userId } = flags;
  const wanted = inFlags(() =>
    parseBudget({ projectId: project, userId, from, until, amount }, 'unit-hours'),
  );
  await changing(api, { projectId: project, userId, validFrom: wanted.validFrom }, async (found) => {
    const body = {
      amount: budgetAmountText(wanted.amount),
      valid_until: dateText(wanted.validUntil),
      reason,
    };
    if (found === undefined) {
      const owner = { project_id: project, ...(userId !== undefined && { user_id: userId }) };
      await api.POST('/v1/budgets', {
        body: { ...owner, valid_from: dateText(wanted.validFrom), ...body },
      });
    } else {
      await api.PATCH('/v1/budgets/{budget_id}', {
        params: { path: { budget_id: String(found.id) }, header: { 'If-Match': found.etag } },
        body,
      });
    }
  });
  await printOf(api, project);
}

export async function removeRemotely(api: Api, project: string, flags: AuthorFlags): Promise<void> {
  const reason = reasonOf(flags);
  const { from, user: userId } = flags;
  const { validFrom } = inFlags(() => parseBudgetKey({ projectId: project, userId, from }));
  await changing(api, { projectId: project, userId, validFrom }, async (found) => {
    if (found === undefined) {
      const whose = whoseText({ projectId: project, userId: userId ?? null });
      throw new UsageError(
        `${whose} has no budget that starts at ${dateText(validFrom)}; budget show prints its budgets`,
      );
    }
    await api.DELETE('/v1/budgets/{budget_id}', {
      params: {
        path: { budget_id: String(found.id) },
        header: { 'If-Match': found.etag },
        query: { reason },
      },
    });
  });
  await printOf(api, project);
}

export async function listRemotely(api: Api, { format }: FormatFlags): Promise<void> {
  const { items, unit, names } = await remoteBudgets(api);
  if (format === 'json') {
    printJson(items.map((budget) => budgetStandingObject(budget, names)));
  } else {
    await printBudgets(items, unit, names);
  }
}

export async function showRemotely(api: Api, project: string, { format }: FormatFlags): Promise<void> {
  const { items: budgets, unit, names: ofBudgets } = await remoteBudgets(api, { project_id: project });
  const { items: leases, accounts } = await remoteCharges(api, project);
  if (budgets.length === 0) {
    const more =
      leases.length > 0 ? '' : ', and the ledger has none of its leases: is this the id of the project?';
    process.stderr.write(`${onOneLine(`warning: project ${project} has no budget${more}`)}\n`);
  }
  const ofLeases = namesOf(accounts);
  const names = {
    ...ofBudgets,
    user: (id: string) => (ofBudgets.user(id) === id ? ofLeases.user(id) : ofBudgets.user(id)),
  };
  await printShown({ budgets, leases, unit, names }, format);
}

export async function historyRemotely(
  api: Api,
  project: string | undefined,
  { format }: FormatFlags,
): Promise<void> {
  const { items, unit } = await remoteChanges(api, project);
  if (format === 'json') {
    printJson(items.map(changeObject));
  } else {
    await printChanges(items, unit);
  }
}

export async function importRemotely(api: Api, path: string, flags: ImportFlags): Promise<void> {
  const isDryRun = flags.dryRun ?? false;
  refuseWho(flags.who);
  const reason = isDryRun ? flags.reason : reasonOf(flags);
  const file = openBudgetFile(path);
  await printImport(file, await remoteImport(api, file, { isDryRun, reason }), flags.format);
}

export async function exportRemotely(
  api: Api,
  format: 'csv' | 'json',
  project: string | undefined,
): Promise<void> {
  process.stdout.write(await remoteExport(api, format, project));
}

type Found = Awaited<ReturnType<typeof remoteBudget>>['found'];

async function changing(api: Api, key: RemoteKey, change: (found: Found) => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const { found } = await remoteBudget(api, key);
    try {
      await change(found);
      return;
    } catch (thrown) {
      const isAgain = thrown instanceof EndpointError && AGAIN.includes(thrown.status ?? 0);
      if (!isAgain || attempt === ATTEMPTS) {
        throw thrown;
      }
    }
  }
}

async function printOf(api: Api, project: string): Promise<void> {
  const { items, unit, names } = await remoteBudgets(api, { project_id: project });
  await printBudgets(items, unit, names);
}

function refuseWho(who: string | undefined): void {
  if (who !== undefined) {
    throw new UsageError('--who: a service records who the token belongs to; leave it out with --endpoint');
  }
}

/** The service records whose token it is, and wants to know why. */
function reasonOf({ reason, who }: { readonly reason?: string; readonly who?: string }): string {
  refuseWho(who);
  if (reason === undefined || reason.trim() === '') {
    throw new UsageError('--reason: a service wants to know why');
  }
  return reason;
}
