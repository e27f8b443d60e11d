/** Requests for more budget: what the commands ask of the ledger and of a service alike, their flags, and how requests are printed. */
import { formatUnitHours } from '../../filter/claim.ts';
import { formatInstant } from '../../lease/dates.ts';
import type { BudgetRequest, TakenStep } from '../../ledger/budgets/requests/rows.ts';
import type { RequestStep } from '../../ledger/budgets/requests/steps.ts';
import type { BudgetRequestState } from '../../ledger/storage/service-tables.ts';
import type { CommandNames } from '../common/command-names.ts';
import type { EndpointFlags } from '../common/endpoint.ts';
import { printJson, printTable } from '../common/output.ts';
import type { SourceFlags } from '../common/sources.ts';
import { secondText, usageObject } from '../ledger/output.ts';

/** `open` = requested or endorsed. */
export type WantedState = BudgetRequestState | 'open' | 'all';

/** Projects and users are as they were typed. */
export interface RequestStore {
  /** The request that was made. */
  ask(project: string, flags: AskFlags): Promise<ListedRequests>;
  /** The request afterwards. */
  take(kind: RequestStep['kind'], request: string, flags: StepFlags): Promise<ListedRequests>;
  /** The newest first. */
  requests(project: string | undefined, state: WantedState): Promise<ListedRequests>;
}

export interface ListedRequests {
  readonly items: readonly BudgetRequest[];
  readonly unit: string;
  readonly names: CommandNames;
}

export interface AskFlags extends StepFlags {
  readonly amount: string;
  readonly until: string;
  readonly user?: string;
  readonly reason: string;
}

export interface StepFlags extends SourceFlags, EndpointFlags {
  readonly format: 'table' | 'json';
  readonly who?: string;
  readonly reason?: string;
  /** Of a grant. */
  readonly amount?: string;
  readonly until?: string;
}

export async function printRequests(
  { items, unit, names }: ListedRequests,
  format: 'table' | 'json',
): Promise<void> {
  if (format === 'json') {
    printJson(items.map((request) => requestObject(request, names)));
    return;
  }
  await printTable(
    [
      ...['REQUEST', 'STATE', 'PROJECT', 'USER', 'AMOUNT', 'UNTIL', 'ASKED BY', 'WHY'],
      ...['ENDORSED BY', 'DECIDED BY', 'REASON', 'GRANTED'],
    ],
    items.map((request) => [
      ...[String(request.id), request.state, names.project(request.projectId)],
      request.userId === null ? '' : names.user(request.userId),
      `${formatUnitHours(request.amount)} ${unit}`,
      ...[secondText(request.validUntil), request.asked.who, request.reason],
      ...[request.endorsed?.who ?? '', request.settled?.who ?? '', request.settled?.reason ?? ''],
      request.granted === null
        ? ''
        : `${formatUnitHours(request.granted.amount)} until ${secondText(request.granted.validUntil)}`,
    ]),
  );
}

function requestObject(request: BudgetRequest, names: CommandNames) {
  const { id, projectId, userId, amount, validUntil, reason, state, asked, granted } = request;
  return {
    request: id,
    ...{ project_id: projectId, user_id: userId },
    ...names.fields(projectId, userId),
    ...{ amount: usageObject(amount), until: secondText(validUntil), reason, state },
    asked: { at: formatInstant(asked.at), who: asked.who },
    endorsed: stepObject(request.endorsed),
    settled: stepObject(request.settled),
    granted: granted && {
      ...{ budget: granted.budget, amount: usageObject(granted.amount) },
      until: secondText(granted.validUntil),
    },
  };
}

function stepObject(taken: TakenStep | null) {
  return taken && { at: formatInstant(taken.at), who: taken.who, reason: taken.reason };
}
