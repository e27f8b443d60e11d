/** The queries of checks, commits and ends. */
import { randomInt } from 'node:crypto';
import { type ExpressionBuilder, type Kysely, type RawBuilder, sql } from 'kysely';
import type { LeaseIdentity } from '../identity.ts';
import type { Crossings } from '../outbox/crossings.ts';
import { CLUSTER_REGION } from '../reconciliation/cluster-mark.ts';
import type { Dialect } from '../storage/connection.ts';
import { prepared, preparedRows } from '../storage/prepared.ts';
import { ENDED, OPEN } from '../storage/query-parts.ts';
import {
  type AccountsTable,
  type EntriesTable,
  LEASE_COLUMNS,
  type LeaseRow,
  type Tables,
} from '../storage/schema.ts';

export type Statements = ReturnType<typeof createStatements>;

export type NewLease = Omit<LeaseRow, 'id'>;

export interface Locked {
  readonly revision: bigint;
  readonly latest_at: bigint;
  readonly ledger: string | null;
  readonly epoch: bigint | null;
  readonly suspended: string | null;
  /** The time, if the ledger uses the database's clock. */
  readonly now?: bigint;
}

/** The increment of a revision. A lease can be recorded a hundred thousand times before it overflows. */
export function revisionStep(): bigint {
  return BigInt(randomInt(1, 2 ** 46));
}

type KnownLease = Omit<LeaseRow, 'region' | 'project_id' | 'revision' | 'recorded_at'>;

type Owner = Pick<LeaseRow, 'region' | 'project_id' | 'user_id'>;

interface ProjectTime {
  readonly project_id: string;
  readonly now: bigint;
}

function isOverdue({ project_id, now }: ProjectTime) {
  return (lease: ExpressionBuilder<Tables, 'leases'>) =>
    lease.and([lease('project_id', '=', project_id), lease('state', '=', OPEN), lease('ends_at', '<=', now)]);
}

function hasEndedEarly({ project_id, now }: ProjectTime) {
  return (lease: ExpressionBuilder<Tables, 'leases'>) =>
    lease.and([
      lease('project_id', '=', project_id),
      lease('state', '=', ENDED),
      lease('ends_at', '>', now),
      lease('ended_at', '=', lease.ref('ends_at')),
    ]);
}

/**
 * `crossings`: writes notices when budgets cross thresholds; `undefined` = none. `time`: the database's, if
 * the ledger uses its clock.
 */
export function createStatements(
  queries: Kysely<Tables>,
  dialect: Dialect,
  crossings?: Crossings,
  time?: RawBuilder<bigint>,
) {
  const leasesOf = ({ project_id }: Pick<LeaseRow, 'project_id'>) =>
    queries.selectFrom('leases').where('project_id', '=', project_id);
  /** Open leases whose id is unknown. */
  const namelessOf = ({ project_id, user_id, region }: Owner) =>
    leasesOf({ project_id })
      .selectAll()
      .where('user_id', '=', user_id)
      .where('region', '=', region)
      .where('lease_id', 'is', null)
      .where('state', '=', OPEN)
      .orderBy('id');
  return {
    crossings,
    expected: new ExpectedAccounts(),
    /**
     * Ids for leases that are added later. `undefined` = adding a lease returns its id without a round trip.
     */
    nextLeaseIds:
      dialect === 'postgresql' ? prepared((of: { count: number }) => nextLeaseIds(queries, of)) : undefined,

    /** Locks the project until the transaction ends. `at`: the time, unless the database provides it. */
    lockProject: prepared((of: { project_id: string; at: bigint }) =>
      queries
        .insertInto('projects')
        .values({ project_id: of.project_id, revision: 1n, latest_at: time ?? of.at })
        .onConflict((conflict) =>
          conflict.column('project_id').doUpdateSet((row) => ({
            revision: row('projects.revision', '+', 1n),
            latest_at: row
              .case()
              .when('projects.latest_at', '<', row.ref('excluded.latest_at'))
              .then(row.ref('excluded.latest_at'))
              .else(row.ref('projects.latest_at'))
              .end(),
          })),
        )
        .returning((row) => [
          'revision',
          'latest_at',
          row.selectFrom('ledger').select('id').as('ledger'),
          row.selectFrom('ledger').select('epoch').as('epoch'),
          row.selectFrom('ledger').select('suspended').as('suspended'),
          ...(time === undefined ? [] : [time.as('now')]),
        ]),
    ),

    /** Open leases past their end date. */
    overdueLeases: prepared((of: ProjectTime) =>
      queries.selectFrom('leases').select(CLAIM_COLUMNS).where(isOverdue(of)).orderBy('ends_at'),
    ),

    /** The number of pending and active leases, without clusters. */
    openLeases: prepared((of: ProjectTime) =>
      leasesOf(of)
        .select(({ fn }) => fn.countAll<bigint | number | string>().as('count'))
        .where('state', '=', OPEN)
        .where('ends_at', '>', of.now)
        .where('region', '!=', CLUSTER_REGION),
    ),

    leaseById: prepared((of: Pick<LeaseRow, 'region' | 'project_id'> & { lease_id: string }) =>
      queries
        .selectFrom('leases')
        .selectAll()
        .where('region', '=', of.region)
        .where('lease_id', '=', of.lease_id)
        .where('project_id', '=', of.project_id),
    ),

    leaseByRow: prepared((of: { id: bigint }) =>
      queries.selectFrom('leases').selectAll().where('id', '=', of.id),
    ),

    /** The latest fold date. */
    latestFold: prepared((of: Pick<LeaseRow, 'region' | 'project_id'>) =>
      queries
        .selectFrom('folds')
        .select('until')
        .where('project_id', '=', of.project_id)
        .where('region', '=', of.region)
        .orderBy('until', 'desc')
        .limit(1),
    ),

    namelessLeases: prepared((of: Owner & Pick<LeaseRow, 'starts_at'>) =>
      namelessOf(of).where('starts_at', '=', of.starts_at),
    ),

    /**
     * Open leases without id that have alternatives, such as other dates. Few: updates usually have the id.
     */
    unsettledNamelessLeases: prepared((of: Owner) => namelessOf(of).where('alternatives', 'is not', null)),

    leasesByKey: prepared((of: Pick<LeaseRow, 'region' | 'project_id'> & { repetition_key: string }) =>
      leasesOf(of)
        .selectAll()
        .where('repetition_key', '=', of.repetition_key)
        .where('region', '=', of.region)
        .where('state', '=', OPEN)
        .orderBy('id'),
    ),

    /** Budgets in force of a project, and of some of its users. */
    budgets: preparedRows((of: { project_id: string; user_id: string }[]) =>
      queries
        .selectFrom('budgets')
        .selectAll()
        .where('project_id', '=', of[0]?.project_id ?? '')
        .where('removed_at', 'is', null)
        .where((budget) => {
          const users = of.map(({ user_id }) => user_id);
          return budget.or([budget('user_id', 'is', null), budget('user_id', 'in', users)]);
        })
        .orderBy('valid_from'),
    ),

    balances: preparedRows((accounts: Pick<AccountsTable, 'project_id' | 'name'>[]) =>
      queries
        .selectFrom('accounts')
        .select(['name', 'balance'])
        .where('project_id', '=', accounts[0]?.project_id ?? '')
        .where(
          'name',
          'in',
          accounts.map(({ name }) => name),
        ),
    ),

    setBalances: preparedRows((accounts: AccountsTable[]) =>
      queries
        .insertInto('accounts')
        .values(accounts.map(({ project_id, name, balance }) => ({ project_id, name, balance })))
        .onConflict((conflict) =>
          conflict
            .columns(['project_id', 'name'])
            .doUpdateSet((row) => ({ balance: row.ref('excluded.balance') })),
        ),
    ),

    addEntries: preparedRows((entries: Omit<EntriesTable, 'id'>[]) =>
      queries
        .insertInto('entries')
        .columns(COLUMNS_OF_ENTRY)
        .expression(sql`values ${sql.join(entries.map((entry) => valuesOf(entry, COLUMNS_OF_ENTRY)))}`),
    ),

    addLease: prepared((lease: NewLease) =>
      queries
        .insertInto('leases')
        .columns(COLUMNS_OF_NEW)
        .expression(sql`values ${valuesOf(lease, COLUMNS_OF_NEW)}`)
        .returning('id'),
    ),

    /** With an id from `nextLeaseIds`. */
    addLeaseWithId: prepared((lease: LeaseRow) =>
      queries
        .insertInto('leases')
        .columns(COLUMNS)
        .expression(sql`overriding system value values ${valuesOf(lease, COLUMNS)}`),
    ),

    /** Updates the row of a known lease. */
    setLease: prepared((lease: KnownLease & { readonly step: bigint }) =>
      queries
        .updateTable('leases')
        .set((row) => ({
          lease_id: lease.lease_id,
          user_id: lease.user_id,
          name: lease.name,
          starts_at: lease.starts_at,
          ends_at: lease.ends_at,
          state: lease.state,
          demand: lease.demand,
          claims: lease.claims,
          alternatives: lease.alternatives,
          repetition_key: lease.repetition_key,
          repetition_content: lease.repetition_content,
          revision: row('revision', '+', lease.step),
          ended_at: lease.ended_at,
          touched_at: lease.touched_at,
          shown: lease.shown,
          resources: lease.resources,
        }))
        .where('id', '=', lease.id),
    ),

    /** Leases that ended by date although the date is in the future. */
    endedEarly: prepared((of: ProjectTime) =>
      queries.selectFrom('leases').select(CLAIM_COLUMNS).where(hasEndedEarly(of)).orderBy('id'),
    ),

    reopenEndedEarly: prepared((of: ProjectTime) =>
      queries.updateTable('leases').set({ state: 'open', ended_at: null }).where(hasEndedEarly(of)),
    ),

    /** Ends the overdue leases, each as of its end date. */
    endOverdue: prepared((of: ProjectTime) =>
      queries
        .updateTable('leases')
        .set((lease) => ({ state: 'ended', ended_at: lease.ref('ends_at') }))
        .where(isOverdue(of)),
    ),
  };
}

/** The columns for `alternativesOf`. */
const CLAIM_COLUMNS = ['id', 'starts_at', 'ends_at', 'demand', 'claims', 'alternatives'] as const;

const COLUMNS = Object.keys(LEASE_COLUMNS) as (keyof LeaseRow)[];
const COLUMNS_OF_NEW = COLUMNS.filter((name): name is keyof NewLease => name !== 'id');

const COLUMNS_OF_ENTRY = [
  ...(['at', 'project_id', 'account', 'delta', 'lease', 'operation', 'who', 'request_id', 'reason'] as const),
];

/** Values in the order of the columns. */
function valuesOf<Name extends string>(
  lease: Readonly<Record<Name, unknown>>,
  columns: readonly Name[],
): RawBuilder<unknown> {
  return sql`(${sql.join(columns.map((name) => lease[name]))})`;
}

/** `null` = the role may insert, but not use the sequence. */
function nextLeaseIds(queries: Kysely<Tables>, { count }: { readonly count: number }) {
  const query = sql<{
    id: bigint | null;
  }>`select case when has_sequence_privilege(ids, 'usage') then nextval(ids::regclass) end as id
    from (select pg_get_serial_sequence('leases', 'id') as ids) as it, generate_series(1, cast(${count} as integer))`;
  return { compile: () => query.compile(queries), toOperationNode: () => query.toOperationNode() };
}

/** Limit of remembered owners: the most recent ones. */
const MOST_OWNERS = 1000;
/** Accounts of leases with more are not remembered. */
const MOST_ACCOUNTS = 32;

type Requester = Pick<LeaseIdentity, 'projectId' | 'userId'>;

class ExpectedAccounts {
  readonly #known = new Map<string, readonly string[]>();

  of(owner: Requester): readonly string[] {
    return this.#known.get(keyOf(owner)) ?? [];
  }

  learn(owner: Requester, accounts: ReadonlySet<string>): void {
    const key = keyOf(owner);
    const known = this.#known.get(key);
    if (known !== undefined && accounts.size === known.length && known.every((name) => accounts.has(name))) {
      return;
    }
    this.#known.delete(key);
    if (accounts.size > 0 && accounts.size <= MOST_ACCOUNTS) {
      this.#known.set(key, [...accounts]);
    }
    const [oldest] = this.#known.keys();
    if (oldest !== undefined && this.#known.size > MOST_OWNERS) {
      this.#known.delete(oldest);
    }
  }
}

function keyOf({ projectId, userId }: Requester): string {
  return `${projectId.length} ${projectId}${userId}`;
}
