import { type CompiledQuery, sql } from 'kysely';
import type { Database } from './database/database.ts';
import type { Locked } from './statements.ts';
import { recordsTable } from './views/many.ts';

/** Locks many projects, always in the same order. `at`: the current time. */
export function lockProjects(
  { queries, dialect }: Pick<Database, 'queries' | 'dialect'>,
  projectIds: readonly string[],
  at: bigint,
): CompiledQuery<Locked & { readonly project_id: string }> {
  const table = recordsTable(
    dialect,
    [['project_id', 'text']],
    projectIds.map((id) => [id]),
  );
  const query = sql<Locked & { readonly project_id: string }>`
    insert into projects (project_id, revision, latest_at)
    select project_id, 1, cast(${at} as bigint) from ${table} as listed where true order by project_id
    on conflict (project_id) do update set revision = projects.revision + 1,
      latest_at = case when projects.latest_at < excluded.latest_at then excluded.latest_at
        else projects.latest_at end
    returning project_id, revision, latest_at, (select id from ledger) as ledger,
      (select epoch from ledger) as epoch, (select suspended from ledger) as suspended`;
  return query.compile(queries);
}
