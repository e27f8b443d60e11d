/** The clusters of SkyPilot that are charged now, beside what was refused. */
import { inTime, withinDeadline } from '../../../base/deadline.ts';
import { LedgerUnavailableError } from '../../../base/errors.ts';
import { type ClusterView, openClusters } from '../../../ledger/reports/ledger-status.ts';
import type { Generation } from '../../configuration/generation.ts';
import { Account } from '../account.tsx';
import { Message } from '../message.tsx';
import { Table } from '../table.tsx';
import { Text } from '../text.tsx';
import { shownDate } from '../time-scale.ts';

/** A slow ledger must not delay the page for longer, in seconds. */
const PATIENCE = 2;
/** Leases that are read. */
const MOST = 100;
const SHOWN = 10;

/** `none` = no policy charges launches; `away` = the ledger does not answer. */
export async function clustersNow({
  skypilot,
}: Pick<Generation, 'skypilot'>): Promise<readonly ClusterView[] | 'none' | 'away'> {
  const { launches } = skypilot.policies;
  if (launches === undefined) {
    return 'none';
  }
  return withinDeadline(PATIENCE, async (deadline) => {
    try {
      return await inTime(
        launches.views.read((ledger) => openClusters(ledger, MOST, deadline)),
        deadline,
      );
    } catch (thrown) {
      if (thrown instanceof LedgerUnavailableError || deadline.signal.aborted) {
        return 'away';
      }
      throw thrown;
    }
  });
}

export function ClustersSection({ clusters }: { readonly clusters: readonly ClusterView[] | 'away' }) {
  return (
    <section aria-labelledby="clusters">
      <h2 id="clusters">Clusters of SkyPilot</h2>
      {clusters === 'away' ? (
        <Message kind="error">The ledger does not answer: launches are refused.</Message>
      ) : clusters.length === 0 ? (
        <p>None is charged now.</p>
      ) : (
        <>
          {clusters.length > SHOWN && <p class="hint">The newest {SHOWN}.</p>}
          <Table
            label="Clusters that are charged now"
            head={['Cluster', 'Project', 'User', 'Start (UTC)', 'State']}
            isLong
          >
            {clusters.slice(0, SHOWN).map((cluster) => (
              <Row {...cluster} />
            ))}
          </Table>
        </>
      )}
      <p>
        <a href="/decisions?outcome=bypassed">Clusters that got past the policies</a>
      </p>
    </section>
  );
}

function Row({ place, projectId, userId, start, isSeen }: ClusterView) {
  return (
    <tr data-key={place}>
      <th scope="row" class="what">
        <Text>{place}</Text>
      </th>
      <td class="who id">
        <Account kind="project" id={projectId} />
      </td>
      <td class="who id">
        <Account kind="user" id={userId} />
      </td>
      <td class="time">{shownDate(start)}</td>
      <td>{isSeen ? 'up' : 'starting'}</td>
    </tr>
  );
}
