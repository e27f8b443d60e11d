/** A lease: its charges, their reasons, and its history. */
import { budgetUnit } from '../../../enforcement/configuration.ts';
import { textMistake } from '../../../ledger/identity.ts';
import { ApiError } from '../../api/route.ts';
import { ledgerFor } from '../../budgets/named-accounts.ts';
import { foundLease, leaseHistory } from '../../leases/lease-history.ts';
import { may, visibleProjects } from '../../users/caller.ts';
import { findDecisions } from '../decisions/found-decisions.ts';
import { type ConsolePage, leasePath, type PageAnswer, type PageRequest } from '../page.ts';
import { listPage } from '../parts/pager.tsx';
import { learnNames } from '../parts/parts.tsx';
import { LeasesWithSameId, LeaseView } from './lease-view.tsx';

const STEPS = 50;

/** The same message if there is no such lease or the caller may not see it. */
const UNKNOWN =
  'there is no lease with this id, or it is in a project that you may not see, or it is no longer stored';

export const leasePage: ConsolePage = {
  method: 'GET',
  path: '/leases/{lease_id}',
  action: 'see-project',
  answer: async (request) => {
    const { lease_id: key = '' } = request.params;
    if (textMistake(key) !== undefined) {
      throw new ApiError(404, UNKNOWN);
    }
    return answered(request, key);
  },
};

async function answered(request: PageRequest, key: string): Promise<PageAnswer> {
  const { caller, query, generation, deadline } = request;
  const ledger = generation.ledger === undefined ? undefined : await ledgerFor(request);
  const { one: found, several } =
    ledger === undefined ? {} : await foundLease(ledger, key, visibleProjects(caller), deadline);
  if (several !== undefined) {
    await learnNames(generation, several);
    return {
      title: `${several.length} leases with the same id`,
      main: <LeasesWithSameId leases={several} />,
    };
  }
  const lease = found?.lease;
  const leaseId = lease === undefined ? key : lease.leaseId;
  const projects = lease && [lease.projectId];
  const history = await leaseHistory(
    {
      limit: STEPS,
      after: listPage(query).after,
      caller,
      found,
      ledger,
      leaseId,
      search: (wanted, page) => findDecisions(request, { ...wanted, ...page, projects }),
    },
    deadline,
  );
  const latest = history.items.find(({ decision }) => decision !== undefined)?.decision?.record;
  if (lease === undefined && latest === undefined && history.next === undefined) {
    throw new ApiError(404, UNKNOWN);
  }
  const projectId = lease?.projectId ?? latest?.project_id ?? null;
  const userId = lease?.userId ?? latest?.user_id ?? null;
  await learnNames(generation, [{ projectId, userId }]);
  const name = lease?.name ?? latest?.lease_name;
  return {
    title: name ? `Lease ${name}` : 'A lease without a name',
    main: (
      <LeaseView
        lease={lease}
        leaseId={leaseId}
        projectId={projectId}
        userId={userId}
        history={history}
        query={query}
        path={leasePath(leaseId, lease?.row)}
        unit={budgetUnit(generation.configuration)}
        seesLedger={may(caller, 'see-ledger')}
      />
    ),
  };
}
