/**
 * Parts of queries: open leases, and lists of values as one parameter, so that the text of a query does not
 * depend on their number, and it is prepared once.
 */
import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Instant } from '../../lease/dates.ts';
import type { Dialect } from './connection.ts';
import type { LeaseState, Tables } from './schema.ts';

/** A table with one column, `value`. */
export function textsTable(dialect: Dialect, values: readonly string[]): RawBuilder<{ value: string }> {
  return dialect === 'sqlite'
    ? sql`json_each(${JSON.stringify(values)})`
    : sql`unnest(${[...values]}::text[]) as listed(value)`;
}

/** Whether a column has one of these texts or row ids. */
export function isAmong(
  dialect: Dialect,
  column: string,
  values: readonly string[] | readonly bigint[],
): RawBuilder<boolean> {
  const texts = values.map(String);
  const isOfTexts = typeof values[0] === 'string';
  const numbers =
    dialect === 'sqlite'
      ? sql`json_each(${`[${texts.join(',')}]`})`
      : sql`unnest(${texts}::bigint[]) as listed(value)`;
  const listed = isOfTexts ? textsTable(dialect, texts) : numbers;
  return values.length === 0 ? sql`1 = 0` : sql`${sql.ref(column)} in (select value from ${listed})`;
}

/** Whether a text of a column contains this one, ignoring the case of a to z only: the same in every locale. */
export function containsText(dialect: Dialect, column: string, text: string): RawBuilder<boolean> {
  const lower = text.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase());
  return dialect === 'sqlite'
    ? sql`instr(lower(${sql.ref(column)}), ${lower}) > 0`
    : sql`strpos(lower(${sql.ref(column)} collate "C"), ${lower}) > 0`;
}

/** Rows with several columns, in their order. Numbers are exact. */
export function recordsTable(
  dialect: Dialect,
  columns: readonly (readonly [name: string, type: 'text' | 'bigint'])[],
  rows: readonly (readonly (string | bigint | null)[])[],
): RawBuilder<unknown> {
  const json = JSON.stringify(rows, (_, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value,
  );
  const selected = sql.join(
    columns.map(([name, type], index) => {
      const cell =
        dialect === 'sqlite'
          ? sql`json_extract(value, ${sql.lit(`$[${index}]`)})`
          : sql`value ->> ${sql.lit(index)}`;
      return type === 'text'
        ? sql`${cell} as ${sql.ref(name)}`
        : sql`cast(${cell} as bigint) as ${sql.ref(name)}`;
    }),
  );
  return dialect === 'sqlite'
    ? sql`(select ${selected} from json_each(${json}))`
    : sql`(select ${selected} from jsonb_array_elements(cast(${json} as jsonb)) as listed(value))`;
}

/**
 * Lease states as literals. With parameters, SQLite could not use its partial index of open leases, and would
 * prepare a query again whenever such a parameter changes.
 */
export const OPEN = sql.lit<LeaseState>('open');
export const ENDED = sql.lit<LeaseState>('ended');

/** The pending and active leases of a region. */
export function openLeasesOf(queries: Kysely<Tables>, region: string, now: Instant) {
  return queries
    .selectFrom('leases')
    .where('region', '=', region)
    .where('state', '=', OPEN)
    .where('ends_at', '>', now);
}
