/** Parts of tables that several versions have. */
import type { ColumnDefinitionBuilder, CreateTableBuilder } from 'kysely';
import { sql } from 'kysely';
import type { Dialect } from '../connection.ts';

export const required = (column: ColumnDefinitionBuilder) => column.notNull();
export const primary = (column: ColumnDefinitionBuilder) => column.primaryKey();

/** The order of ids is that of writing: a file must not use one again. */
export function withOrderedId<Table extends string>(table: CreateTableBuilder<Table>, dialect: Dialect) {
  return dialect === 'sqlite'
    ? table.addColumn('id', 'integer', (column) => column.primaryKey().autoIncrement())
    : table.addColumn('id', sql`bigint generated always as identity`, primary);
}
