import type { RenderableProps } from 'preact';
import { type Deadline, inTime, withinDeadline } from '../../../base/deadline.ts';
import { LedgerUnavailableError } from '../../../base/errors.ts';
import { MICROSECONDS_PER_SECOND } from '../../../lease/dates.ts';
import { countOutbox, type OutboxCounts } from '../../../ledger/outbox/reports.ts';
import {
  type ClusterView,
  type LedgerStatus,
  ledgerStatus,
  openClusters,
} from '../../../ledger/reports/ledger-status.ts';
import type { Generation } from '../../configuration/generation.ts';
import { type Column, column, Message, Section, Table, Text, Time } from '../parts/parts.tsx';
import { toSecond } from '../parts/time-scale.ts';

interface InStepProps {
  readonly state: Awaited<ReturnType<typeof inStep>>;
  /** How often the ledger is reconciled with Blazar, in seconds; `undefined` = never. */
  readonly every: number | undefined;
}

/** The number of missed reconciliations after which it is late. */
const LATE = 5n;

export function InStepSection({ state, every }: InStepProps) {
  return (
    <Section id="in-step" title="Ledger and Blazar" isLive>
      {state === undefined ? (
        <p>No filter needs a ledger.</p>
      ) : state === 'away' ? (
        <Message kind="error">The ledger does not answer: leases that need it are refused.</Message>
      ) : (
        <Tiles {...state} every={every} />
      )}
    </Section>
  );
}

function Tiles(props: InStep & { readonly every: number | undefined }) {
  const { suspended, followedAt, holder, now, outbox, every } = props;
  const age = followedAt === undefined ? undefined : (now - followedAt) / MICROSECONDS_PER_SECOND;
  const isLate = every !== undefined && (age === undefined || age > LATE * BigInt(Math.ceil(every)));
  return (
    <>
      {suspended !== undefined && (
        <Message kind="error">
          No lease that needs the ledger is allowed: <Text>{suspended}</Text>. Run{' '}
          <code>blazar-enforcement ledger reconcile</code> with the leases that Blazar has.
        </Message>
      )}
      <ul class="tiles">
        <Tile what="Ledger" look={suspended === undefined ? undefined : 'bad'}>
          {suspended === undefined ? 'in use' : 'suspended'}
        </Tile>
        <Tile what="Compared with Blazar" look={isLate ? 'care' : undefined}>
          {every === undefined
            ? 'not configured'
            : age === undefined || followedAt === undefined
              ? 'not yet'
              : `${duration(age)} ago`}
          {followedAt !== undefined && (
            <small>
              <Time at={toSecond(followedAt)} /> UTC
              {holder !== undefined && (
                <>
                  , by <Text>{holder}</Text>
                </>
              )}
            </small>
          )}
        </Tile>
        <Tile what="Queued messages" look={outbox.oldestSeconds > 600 ? 'care' : undefined}>
          {outbox.waiting}
          {outbox.waiting > 0 && (
            <small>the oldest for {duration(BigInt(Math.floor(outbox.oldestSeconds)))}</small>
          )}
        </Tile>
        <Tile what="Dead messages" look={outbox.dead > 0 ? 'bad' : undefined}>
          {outbox.dead}
          {outbox.dead > 0 && (
            <small>
              see <code>blazar-enforcement outbox list</code>
            </small>
          )}
        </Tile>
      </ul>
    </>
  );
}

function Tile({ what, look, children }: RenderableProps<{ what: string; look: 'care' | 'bad' | undefined }>) {
  return (
    <li class={look}>
      {what}: <b>{children}</b>
    </li>
  );
}

/** `45 s`, `12 min`, `3 h`, `2 days` */
function duration(seconds: bigint): string {
  const whole = seconds < 0n ? 0n : seconds;
  if (whole < 120n) {
    return `${whole} s`;
  }
  if (whole < 7200n) {
    return `${whole / 60n} min`;
  }
  return whole < 172_800n ? `${whole / 3600n} h` : `${whole / 86_400n} days`;
}

type InStep = { readonly outbox: OutboxCounts } & LedgerStatus;

/** Maximum delay of the page by the ledger, in seconds. */
const PATIENCE = 2;

/** `away` = the ledger does not answer. */
function answered<Answer>(read: (deadline: Deadline) => Promise<Answer>): Promise<Answer | 'away'> {
  return withinDeadline(PATIENCE, async (deadline) => {
    try {
      return await inTime(read(deadline), deadline);
    } catch (thrown) {
      if (thrown instanceof LedgerUnavailableError || deadline.signal.aborted) {
        return 'away';
      }
      throw thrown;
    }
  });
}

/** `undefined` = nothing uses a ledger. */
export async function inStep({ ledger }: Generation): Promise<InStep | 'away' | undefined> {
  return (
    ledger &&
    answered((deadline) =>
      ledger.read(async (opened) => ({
        ...(await ledgerStatus(opened, deadline)),
        outbox: await countOutbox(opened, deadline),
      })),
    )
  );
}

const MOST = 100;
const SHOWN = 10;

/** `undefined` = no policy charges launches. */
export async function clustersNow({ skypilot }: Generation) {
  const views = skypilot.policies.launches?.views;
  return views && answered((deadline) => views.read((ledger) => openClusters(ledger, MOST, deadline)));
}

export function ClustersSection({ clusters }: { readonly clusters: readonly ClusterView[] | 'away' }) {
  return (
    <Section id="clusters" title="Clusters of SkyPilot" isLive>
      {clusters === 'away' ? (
        <Message kind="error">The ledger does not answer: launches are refused.</Message>
      ) : (
        <>
          {clusters.length > SHOWN && <p class="hint">The newest {SHOWN}.</p>}
          <Table
            label="Clusters that are charged now"
            columns={CLUSTER_COLUMNS}
            rows={clusters.slice(0, SHOWN)}
            rowProps={({ place }) => ({ 'data-key': place })}
            empty="No cluster is charged now."
            isLong
          />
        </>
      )}
      <p>
        <a href="/decisions?outcome=bypassed">Clusters that bypassed the policies</a>
      </p>
    </Section>
  );
}

const CLUSTER_COLUMNS: readonly Column<ClusterView>[] = [
  column('Cluster', 'what', ({ place }) => <Text>{place}</Text>),
  column('Project', 'who id', ({ projectId }) => <Text>{projectId}</Text>),
  column('User', 'who id', ({ userId }) => <Text>{userId}</Text>),
  column('Start (UTC)', 'time', ({ start }) => <Time at={start} />),
  column('State', undefined, ({ isSeen }) => (isSeen ? 'up' : 'starting')),
];
