/** The lines of an import as a table that queries read, so that the transaction, for which leases wait, has little to do. */
import { type RawBuilder, sql } from 'kysely';
import { type Wait, waitFor } from '../../base/deadline.ts';
import { timedYield } from '../../base/yield-to-event-loop.ts';
import { type Database, rows, type Work } from '../storage/database.ts';
import { recordsTable } from '../storage/query-parts.ts';
import type { PlannedLine } from './plan.ts';

export interface ImportLines {
  /** With the columns of `COLUMNS`. */
  readonly table: RawBuilder<unknown>;
  /** Whether all of them are there: a connection that was opened again has none. */
  isWhole(): Work<boolean>;
  /** Call it at the end. */
  remove(): Promise<void>;
}

const COLUMNS = [
  ['number', 'bigint'],
  ['project_id', 'text'],
  ['user_id', 'text'],
  ['valid_from', 'bigint'],
  ['valid_until', 'bigint'],
  ['amount', 'bigint'],
  // The row that is replaced; null = it is new.
  ['budget', 'bigint'],
  // 1 = something changes.
  ['is_changed', 'bigint'],
] as const;
const NAMES = sql.join(COLUMNS.map(([name]) => sql.ref(name)));

/** Lines that are written to a temporary table at once: others have their turns in between. */
const PIECE = 200;

/** Of imports of this process at the same time: they share a connection. */
let imports = 0;

/** Nothing that others see. @throws LedgerUnavailableError */
export async function importLines(
  database: Database,
  lines: readonly PlannedLine[],
  wait: Wait,
): Promise<ImportLines> {
  if (database.dialect === 'postgresql') {
    // A connection belongs to nobody: what is sent with each query needs none.
    const table = recordsTable(database.dialect, COLUMNS, lines.map(recordOf));
    return { table, isWhole: always, remove: async () => {} };
  }
  const { queries } = database;
  imports += 1;
  const id = imports;
  const create = sql`create temp table if not exists import_lines (import integer not null,
    number integer not null, project_id text not null, user_id text, valid_from integer not null,
    valid_until integer not null, amount integer not null, budget integer, is_changed integer not null,
    primary key (import, project_id, number)) without rowid`.compile(queries);
  const written = (step: RawBuilder<unknown>, within: Wait) =>
    database.transact(function* () {
      yield* rows(create);
      yield* rows(step.compile(queries));
    }, within);
  // Also when nobody waits for the import any more.
  const remove = () => written(sql`delete from temp.import_lines where import = ${id}`, waitFor(undefined));
  const records = lines.map(recordOf);
  const yieldIfDue = timedYield();
  try {
    for (let at = 0; at < records.length; at += PIECE) {
      await yieldIfDue();
      const some = recordsTable(database.dialect, COLUMNS, records.slice(at, at + PIECE));
      const add = sql`insert into temp.import_lines (import, ${NAMES}) select ${id}, ${NAMES} from ${some} as some`;
      await written(add, wait);
    }
  } catch (thrown) {
    await remove().catch(() => {});
    throw thrown;
  }
  const count = sql<{ count: bigint }>`select count(*) as count from temp.import_lines where import = ${id}`;
  return {
    table: sql`(select ${NAMES} from temp.import_lines where import = ${id})`,
    *isWhole() {
      yield* rows(create);
      const [row] = yield* rows(count.compile(queries));
      return row?.count === BigInt(lines.length);
    },
    remove,
  };
}

// biome-ignore lint/correctness/useYield: it asks nothing.
function* always(): Work<boolean> {
  return true;
}

function recordOf({ wanted, before, outcome }: PlannedLine, index: number) {
  const { projectId, userId, validFrom, validUntil, amount } = wanted;
  return [
    ...[BigInt(index), projectId, userId, validFrom, validUntil, amount, before?.id ?? null],
    outcome === 'unchanged' ? 0n : 1n,
  ];
}
