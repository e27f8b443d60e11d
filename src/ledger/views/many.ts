/** Lists of values as one parameter: the text of a query stays the same however many there are, and is prepared once. */
import { type RawBuilder, sql } from 'kysely';
import type { Dialect } from '../connection.ts';

/** A table of one column, `value`, for `from` and `in (select value from …)`. */
export function textsTable(dialect: Dialect, values: readonly string[]): RawBuilder<{ value: string }> {
  return dialect === 'sqlite'
    ? sql`json_each(${JSON.stringify(values)})`
    : sql`unnest(${[...values]}::text[]) as listed(value)`;
}

/** Numbers of rows. */
export function rowsTable(dialect: Dialect, values: readonly bigint[]): RawBuilder<{ value: bigint }> {
  return dialect === 'sqlite'
    ? sql`json_each(${`[${values.join(',')}]`})`
    : sql`unnest(${values.map(String)}::bigint[]) as listed(value)`;
}
