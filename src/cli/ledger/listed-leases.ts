/** The leases of `ledger list`: from the configured ledger, or from a service. */
import { z } from 'zod';
import type { ApiClient } from '../../client/client.ts';
import { formatInstant } from '../../lease/dates.ts';
import { type FoldedTotals, foldedOfLedger, foldedOfProject } from '../../ledger/folding/totals.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { listLeases } from '../../ledger/reports/reports.ts';
import { account, namesOf, projectIdOf, time, understood, whole } from '../common/answers.ts';
import { type CommandNames, commandNames, typedId } from '../common/command-names.ts';
import { UsageError } from '../common/output.ts';
import { type LedgerAccess, NO_DEADLINE } from './access.ts';
import type { ListedLease } from './output.ts';

export interface LeaseSelection {
  readonly project?: string;
  readonly user?: string;
  readonly state?: 'open' | 'ended';
  readonly limit: number;
}

export interface ListedLeases {
  /** Newest first. */
  readonly leases: readonly ListedLease[];
  readonly names: CommandNames;
  /** What the list lacks. `undefined` = it is complete. */
  readonly missing: string | undefined;
}

export async function localLeases(
  { ledger, configuration }: LedgerAccess,
  { project, user, state, limit }: LeaseSelection,
): Promise<ListedLeases> {
  const projectId = project && (await typedId(configuration, 'project', project));
  const userId = user && (await typedId(configuration, 'user', user));
  const leases = await listLeases(ledger, { projectId, userId, state, limit }, NO_DEADLINE);
  const isWhole = leases.length === limit || state === 'open';
  return {
    leases,
    names: await commandNames(configuration, leases),
    missing: isWhole ? undefined : await foldedText(ledger, projectId),
  };
}

/** What lists of the project, or of the ledger, lack. `undefined` = nothing is folded. */
export async function foldedText(ledger: Ledger, projectId: string | undefined): Promise<string | undefined> {
  const folded =
    projectId === undefined
      ? await foldedOfLedger(ledger, NO_DEADLINE)
      : await foldedOfProject(ledger, projectId, NO_DEADLINE);
  return folded && textOf(folded);
}

function textOf({ leases, until }: FoldedTotals): string {
  return `${leases} leases that ended before ${formatInstant(until)} are folded into totals and not here; see ledger compact`;
}

const listed = z.object({
  row: whole,
  lease_id: z.string().nullable(),
  region: z.string(),
  user: account,
  name: z.string(),
  start: time,
  end: time,
  state: z.enum(['pending', 'active', 'ended']),
  recorded_at: time,
});
const page = z.object({
  items: z.array(listed),
  folded: z.object({ leases: z.int(), before: time }).nullable(),
});
const PAGE = 1000;

/** @throws UsageError without a project; EndpointError */
export async function remoteLeases(
  client: ApiClient,
  { project, user, state, limit }: LeaseSelection,
): Promise<ListedLeases> {
  if (project === undefined) {
    throw new UsageError('--project: required with --endpoint: a service lists the leases of one project');
  }
  const projectId = await projectIdOf(client, project);
  const query = {
    ...(user !== undefined && { user_id: user }),
    ...(state !== undefined && { state }),
    limit: Math.min(limit, PAGE),
  };
  const found: z.infer<typeof listed>[] = [];
  let folded = null as z.infer<typeof page>['folded'];
  const path = '/v1/projects/{project_id}/leases';
  for await (const answer of client.pages(path, { path: { project_id: projectId }, query })) {
    const read = understood(page, answer);
    found.push(...read.items);
    folded = read.folded;
    if (found.length >= limit) {
      break;
    }
  }
  const leases = found.slice(0, limit).map(
    (one): ListedLease => ({
      row: BigInt(one.row),
      leaseId: one.lease_id,
      region: one.region,
      name: one.name,
      projectId,
      userId: one.user.id,
      start: one.start,
      end: one.end,
      state: one.state === 'ended' ? 'ended' : 'open',
      recordedAt: one.recorded_at,
      endedAt: one.state === 'ended' ? one.end : null,
    }),
  );
  const unnamed = { id: projectId, name: null, domain: null };
  const isWhole = leases.length === limit || state === 'open';
  return {
    leases,
    names: namesOf(found.map((one) => ({ project: unnamed, user: one.user }))),
    missing:
      isWhole || folded === null
        ? undefined
        : textOf({ leases: BigInt(folded.leases), until: folded.before }),
  };
}
