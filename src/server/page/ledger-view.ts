/** What the page shows of the ledger: of the project that is asked for, or which projects there are. */

import { inTime, withinDeadline } from '../../deadline.ts';
import type { RecentDecisions, RefusedLease } from '../../decisions/recent.ts';
import type { Configuration } from '../../enforcement/configuration.ts';
import { LedgerUnavailableError } from '../../errors.ts';
import { type BudgetStanding, listBudgets } from '../../ledger/budgets.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { activeProjects, type ProjectTimeline, projectTimeline } from '../../ledger/timeline.ts';
import type { Generation } from '../generation.ts';

export interface ProjectView {
  readonly budgets: readonly BudgetStanding[];
  readonly timeline: ProjectTimeline;
  /** By this process, the newest first. */
  readonly refused: readonly RefusedLease[];
}

export interface LedgerView {
  /** What is asked for; empty = nothing is. */
  readonly projectId: string;
  /** What budgets are counted in. */
  readonly unit: string;
  readonly shown:
    | { readonly kind: 'project'; readonly project: ProjectView }
    /** Those with leases or budgets, the most recently active first. */
    | { readonly kind: 'projects'; readonly projects: readonly string[] }
    | { readonly kind: 'unavailable' }
    /** It can be no project. */
    | { readonly kind: 'mistake'; readonly message: string };
}

/** The page must not take long where the ledger does, in seconds. */
const PATIENCE = 2;
const MAX_PROJECTS = 20;
const MAX_LEASES = 50;
const MAX_NAME = 255;
const CONTROL = /\p{Cc}/u;

/** `undefined` where the configuration has no filter that needs a ledger. */
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
  const facts = { projectId, unit: unitOf(configuration) };
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
      return { ...facts, shown };
    } catch (thrown) {
      if (thrown instanceof LedgerUnavailableError || deadline.signal.aborted) {
        return { ...facts, shown: { kind: 'unavailable' } };
      }
      throw thrown;
    }
  });
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

/** Of UsageBudgetFilter, whether it is enabled or not: budgets may have been set all the same. */
function unitOf({ settings }: Configuration): string {
  const unit = settings.find(
    ({ option }) => option.section === 'enforcement' && option.name === 'usage_budget_unit',
  );
  return typeof unit?.value === 'string' ? unit.value : 'unit-hours';
}
