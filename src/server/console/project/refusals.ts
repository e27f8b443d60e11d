/** The latest refusals of a project, with the way to each decision and back to "Try it". */
import type { RefusedLease } from '../../../decisions/recent.ts';
import type { PageRequest } from '../page.ts';
import { pathWith } from '../paths.ts';
import { local } from '../try/wish-of-lease.ts';
import type { Refusal } from './project-data.ts';

const SHOWN = 20;

export async function refusalsOf({ recorder }: PageRequest, projectId: string): Promise<Refusal[]> {
  return recorder.recent
    .refused()
    .filter(({ record }) => record.project_id === projectId && isAboutLease(record.operation))
    .slice(0, SHOWN)
    .map(refusalOf);
}

/** Workspaces of SkyPilot and namespaces of Kubernetes may be called like a project of somebody else. */
function isAboutLease(operation: string): boolean {
  return !operation.includes('.');
}

function refusalOf({ record, start, end }: RefusedLease): Refusal {
  return {
    ...{ record, start, end },
    decisionPath: `/decisions/${encodeURIComponent(record.request_id)}`,
    tryPath: pathWith('/try', {
      project: record.project_id ?? undefined,
      user: record.user_id ?? undefined,
      name: record.lease_name ?? undefined,
      start: local(start),
      end: local(end),
    }),
  };
}
