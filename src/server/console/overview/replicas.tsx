/** The replicas that share the database, each with its own state. */
import { withinDeadline } from '../../../base/deadline.ts';
import { type PresentReplica, REPLICA_LISTED } from '../../../decisions/store/contract.ts';
import type { Generation } from '../../configuration/generation.ts';
import { type Column, column, Message, Section, Table, Text } from '../parts/parts.tsx';

/** Maximum delay of the page by the database, in seconds. */
const PATIENCE = 2;

/** `undefined` = without stored decisions, replicas are unknown; `away` = the list cannot be read (logged). */
type Replicas = readonly PresentReplica[] | 'away' | undefined;

export async function replicasNow({ decisions }: Generation): Promise<Replicas> {
  return (
    decisions &&
    withinDeadline(PATIENCE, (wait) => decisions.replicas.replicas(wait)).catch(() => 'away' as const)
  );
}

export function ReplicasSection({ replicas }: { readonly replicas: Replicas }) {
  return (
    <Section id="replicas" title="Replicas" isLive>
      {replicas === undefined ? (
        <p>Other replicas are not known: decisions are not stored.</p>
      ) : replicas === 'away' ? (
        <Message kind="error">The list of replicas cannot be read at the moment.</Message>
      ) : (
        <Listed replicas={replicas} />
      )}
      <details>
        <summary>What replicas share, and what each has for itself</summary>
        <Table label="What replicas share, and what each has for itself" columns={SCOPES} rows={SCOPE_ROWS} />
      </details>
    </Section>
  );
}

function Listed({ replicas }: { readonly replicas: readonly PresentReplica[] }) {
  const differ = (['version', 'digest'] as const).filter(
    (name) => new Set(replicas.map((one) => one[name])).size > 1,
  );
  return (
    <>
      {differ.length > 0 && (
        <Message kind="notice">
          Replicas differ in their {differ.map((name) => DIFFERENCES[name]).join(' and ')}: what is decided
          depends on which one is asked.
        </Message>
      )}
      <p class="hint">
        A replica that was killed is listed for {REPLICA_LISTED} seconds. Each replica counts its own
        generations. Equal configurations have equal digests; secrets are not compared.
      </p>
      <Table
        label="Replicas of the service"
        columns={COLUMNS}
        rows={replicas}
        rowProps={({ name }) => ({ 'data-key': name })}
        empty="No replica is listed yet."
      />
    </>
  );
}

const DIFFERENCES = { version: 'version', digest: 'configuration' };

const COLUMNS: readonly Column<PresentReplica>[] = [
  column('Replica', 'id', ({ name, isSelf }) => (
    <>
      <Text>{name}</Text>
      {isSelf && <small> this one</small>}
    </>
  )),
  column('Version', undefined, ({ version }) => <Text>{version}</Text>),
  column('Generation', 'number', ({ generation }) => generation),
  column('Configuration', 'id', ({ digest }) => <Text>{digest}</Text>),
];

type Scope = readonly [what: string, of: 'each' | 'all'];

const SCOPE_ROWS: readonly Scope[] = [
  ['Leases, budgets, stored decisions, queued messages', 'all'],
  ['Sessions of the console, wrong passwords', 'all'],
  ['Which replica compares with Blazar and SkyPilot', 'all'],
  ['Configuration and its generation: each reloads by itself', 'each'],
  ['Circuit breakers of external services', 'each'],
  ['Caches: tokens that Keystone has validated, names of projects and users', 'each'],
  ['Requests under way and queued, wrong tokens, streams of live updates', 'each'],
  ['Metrics, decision log', 'each'],
];

const SCOPES: readonly Column<Scope>[] = [
  column('What', undefined, ([what]) => what),
  column('Of', undefined, ([, of]) =>
    of === 'all' ? 'all replicas that share the database' : 'each replica',
  ),
];
