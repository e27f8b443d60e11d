/** The latest refusals of a project, with the way to each decision and back to "Try it". */
import type { DecisionRecord } from '../../../decisions/record.ts';
import { memberView } from '../../../decisions/store/member-view.ts';
import type { Instant } from '../../../lease/dates.ts';
import { decisionSource } from '../decisions/decision-source.ts';
import type { PageRequest } from '../page.ts';
import { pathWith } from '../paths.ts';
import { local } from '../try/wish-of-lease.ts';
import type { Refusal } from './project-data.ts';

const SHOWN = 20;

interface Refused {
  readonly record: DecisionRecord;
  readonly asked: { readonly start: Instant; readonly end: Instant } | undefined;
}

/** Of all replicas where decisions are stored, else of this process. @throws LedgerUnavailableError */
export async function refusalsOf(request: PageRequest, projectId: string): Promise<Refusal[]> {
  const source = decisionSource(request.generation);
  const found: readonly Refused[] =
    source === undefined
      ? request.recorder.recent
          .refused()
          .filter(({ record }) => record.project_id === projectId && isAboutLease(record.operation))
          .map(({ record, start, end }) => ({ record: memberView(record), asked: { start, end } }))
      : (await source.search({ ...refusedIn(projectId), limit: SHOWN, after: undefined }, request.deadline))
          .items;
  return found.slice(0, SHOWN).map(refusalOf);
}

/** `visible`: only decisions about leases. */
function refusedIn(projectId: string) {
  return { visible: [projectId], projects: [projectId], outcomes: ['rejected', 'failed'] as const };
}

/** Workspaces of SkyPilot and namespaces of Kubernetes may be called like a project of somebody else. */
function isAboutLease(operation: string): boolean {
  return !operation.includes('.');
}

function refusalOf({ record, asked }: Refused): Refusal {
  return {
    ...{ record, start: asked?.start, end: asked?.end },
    decisionPath: `/decisions/${encodeURIComponent(record.request_id)}`,
    tryPath: pathWith('/try', {
      project: record.project_id ?? undefined,
      user: record.user_id ?? undefined,
      name: record.lease_name ?? undefined,
      start: asked && local(asked.start),
      end: asked && local(asked.end),
    }),
  };
}
