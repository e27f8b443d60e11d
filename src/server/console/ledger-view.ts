/** What the page shows of the ledger: one project, or the list of projects. */

import { inTime, withinDeadline } from '../../deadline.ts';
import type { RecentDecisions, RefusedLease } from '../../decisions/recent.ts';
import type { Configuration } from '../../enforcement/configuration.ts';
import { LedgerUnavailableError } from '../../errors.ts';
import { type BudgetStanding, listBudgets } from '../../ledger/budgets.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { activeProjects, type ProjectTimeline, projectTimeline } from '../../ledger/timeline.ts';
import type { Generation } from '../generation.ts';
import type { NameOf } from './account.tsx';

export interface ProjectView {
  readonly budgets: readonly BudgetStanding[];
  readonly timeline: ProjectTimeline;
  /** By this process, newest first. */
  readonly refused: readonly RefusedLease[];
}

export interface LedgerView {
  /** The requested project; empty = none. */
  readonly projectId: string;
  /** The unit of budgets. */
  readonly unit: string;
  /** What Keystone calls the projects and users, as far as it is known. */
  readonly nameOf?: NameOf;
  readonly shown:
    | { readonly kind: 'project'; readonly project: ProjectView }
    /** Projects with leases or budgets, the most recently active first. */
    | { readonly kind: 'projects'; readonly projects: readonly string[] }
    | { readonly kind: 'unavailable' }
    /** It cannot be the id of a project. */
    | { readonly kind: 'mistake'; readonly message: string };
}

/** In seconds: a slow ledger must not delay the page for longer. */
const PATIENCE = 2;
const MAX_PROJECTS = 20;
const MAX_LEASES = 50;
const MAX_NAME = 255;
const CONTROL = /\p{Cc}/u;

/** `undefined` if no filter of the configuration needs a ledger. */
export async function ledgerView(
  { enforcement, configuration }: Generation,
  asked: string,
  recent: RecentDecisions,
): Promise<LedgerView | undefined> {
  const { ledger } = enforcement;
  if (ledger === undefined) {
    return undefined;
  }
  const projectId = asked.trim();
  const nameOf: NameOf = (kind, id) => enforcement.names?.known({ project_id: id, user_id: id })[kind];
  const facts = { projectId, unit: unitOf(configuration), nameOf };
  if (!canBeAsked(projectId)) {
    const message = `Expected the id of a project, of at most ${MAX_NAME} characters that can be written.`;
    return { ...facts, projectId: '', shown: { kind: 'mistake', message } };
  }
  return withinDeadline(PATIENCE, async (deadline) => {
    try {
      const shown = await inTime(
        ledger.read(async (opened): Promise<LedgerView['shown']> => {
          if (projectId === '') {
            const projects = await activeProjects(opened, MAX_PROJECTS, deadline);
            return { kind: 'projects', projects: projects.filter(canBeAsked) };
          }
          return { kind: 'project', project: await look(opened, projectId, recent, deadline) };
        }),
        deadline,
      );
      await enforcement.names?.learn(...idsOf(projectId, shown), deadline.milliseconds / 2);
      return { ...facts, shown };
    } catch (thrown) {
      if (thrown instanceof LedgerUnavailableError || deadline.signal.aborted) {
        return { ...facts, shown: { kind: 'unavailable' } };
      }
      throw thrown;
    }
  });
}

/** The projects and users that are shown. */
function idsOf(projectId: string, shown: LedgerView['shown']): [readonly string[], readonly string[]] {
  if (shown.kind !== 'project') {
    return [shown.kind === 'projects' ? shown.projects : [], []];
  }
  const { budgets, timeline, refused } = shown.project;
  const users = [
    ...[...budgets, ...timeline.leases].map(({ userId }) => userId),
    ...refused.map(({ record }) => record.user_id),
  ];
  return [[projectId], users.flatMap((id) => id ?? [])];
}

/** The figures of both answers may be apart by what happens in between. */
async function look(
  ledger: Ledger,
  projectId: string,
  recent: RecentDecisions,
  wait: Parameters<typeof listBudgets>[2],
): Promise<ProjectView> {
  const timeline = await projectTimeline(ledger, projectId, MAX_LEASES, wait);
  const budgets = await listBudgets(ledger, projectId, wait);
  const refused = recent.refused().filter(({ record }) => record.project_id === projectId);
  return { budgets, timeline, refused };
}

function canBeAsked(projectId: string): boolean {
  return projectId.length <= MAX_NAME && !CONTROL.test(projectId) && projectId === projectId.trim();
}

/** The option of UsageBudgetFilter, enabled or not: there may be budgets without it. */
function unitOf({ settings }: Configuration): string {
  const unit = settings.find(
    ({ option }) => option.section === 'enforcement' && option.name === 'usage_budget_unit',
  );
  return typeof unit?.value === 'string' ? unit.value : 'unit-hours';
}
