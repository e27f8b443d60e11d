/** Importing budgets from CSV: first what would change, then the confirmation of exactly that. */
import { createHash } from 'node:crypto';
import { budgetUnit } from '../../../enforcement/budget-unit.ts';
import type { ImportPlan } from '../../../ledger/budgets/plan.ts';
import { ApiError } from '../../api/route.ts';
import { reasonOf } from '../../budgets/change-budgets.ts';
import { nameOfFor } from '../known-names.tsx';
import type { ConsolePage, PageAnswer, PageRequest } from '../page.ts';
import { isMendable } from './budget-form.ts';
import { ImportView, type ImportViewProps } from './import-view.tsx';

/** In bytes, as forms encode them: a thousand budgets and more. */
const FORM_LIMIT = 2_097_152;
const TITLE = 'Import budgets';

export const importPage: ConsolePage = {
  method: 'GET',
  path: '/budgets/import',
  action: 'import-budgets',
  answer: async (request) => shown(request, {}),
};

export const importForm: ConsolePage = {
  method: 'POST',
  path: '/budgets/import',
  action: 'import-budgets',
  formLimit: FORM_LIMIT,
  answer: async (request) => {
    const { form } = request;
    // Browsers write every line break as two characters.
    const csv = (form.get('csv') ?? '').replaceAll('\r\n', '\n');
    const reason = form.get('reason') ?? '';
    try {
      return await imported(request, csv, reason, form.get('do') === 'import');
    } catch (thrown) {
      if (!(thrown instanceof ApiError) || !isMendable(thrown)) {
        throw thrown;
      }
      const { status, message, field } = thrown;
      const mistake = field === 'reason' ? { reasonMistake: message } : { mistake: message };
      return shown(request, { csv, reason, status, ...mistake });
    }
  },
};

async function imported(
  request: PageRequest,
  csv: string,
  reason: string,
  isConfirmed: boolean,
): Promise<PageAnswer> {
  const { readBudgetCsv } = await import('../../../ledger/budgets/csv.ts');
  const { importFor } = await import('../../budgets/budget-importing.ts');
  reasonOf(reason);
  const file = await readBudgetCsv(csv);
  const plan = await importFor(request, file, { isDryRun: true, reason });
  const digest = digestOf(csv, plan);
  const isFine = plan.mistakes.length === 0 && plan.lines.length > 0;
  if (!isConfirmed || !isFine) {
    const mistake = plan.lines.length + plan.mistakes.length === 0 ? 'The text names no budget.' : undefined;
    return shown(request, { csv, reason, plan, digest, mistake, status: isFine ? 200 : 422 });
  }
  if (request.form.get('digest') !== digest) {
    const mistake =
      'Nothing was set: the text, or budgets that it would change, are not as they were when you saw what it would change. Look again.';
    return shown(request, { csv, reason, plan, digest, mistake, status: 412 });
  }
  const done = await importFor(request, file, { isDryRun: false, reason });
  if (done.mistakes.length > 0) {
    return shown(request, { csv, reason, plan: done, digest: '', status: 409 });
  }
  return { redirect: '/budgets?done=imported' };
}

/** Of the text and of what it would change: somebody who has seen this confirms this. */
function digestOf(csv: string, { lines }: ImportPlan): string {
  const hash = createHash('sha256').update(csv);
  for (const { line, outcome, before } of lines) {
    hash.update(
      `\n${line} ${outcome} ${before?.id} ${before?.amount} ${before?.validUntil} ${before?.isRemoved}`,
    );
  }
  return hash.digest('base64url');
}

type Shown = Partial<
  Pick<ImportViewProps, 'csv' | 'reason' | 'plan' | 'digest' | 'mistake' | 'reasonMistake'>
> & {
  readonly status?: number;
};

function shown(
  { csrf, generation, person }: PageRequest,
  { csv = '', reason = '', plan, digest = '', mistake, reasonMistake, status = 200 }: Shown,
): PageAnswer {
  return {
    status,
    title: TITLE,
    main: (
      <ImportView
        {...{ csv, reason, csrf, plan, digest, mistake, reasonMistake }}
        unit={budgetUnit(generation.configuration)}
        nameOf={nameOfFor(generation, person)}
      />
    ),
  };
}
