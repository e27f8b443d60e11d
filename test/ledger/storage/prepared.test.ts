import { Kysely, SqliteDialect } from 'kysely';
import { describe, expect, it } from 'vitest';
import { prepared, preparedRows, statementOf } from '../../../src/ledger/storage/prepared.ts';

interface Tables {
  things: { name: string; size: bigint | null };
}

const queries = new Kysely<Tables>({
  dialect: new SqliteDialect({ database: () => Promise.reject(new Error('it only compiles queries')) }),
});

describe('prepared', () => {
  it('builds a query once, and fills in the values of each call', () => {
    let built = 0;
    const find = prepared((of: { name: string; size: bigint | null }) => {
      built += 1;
      return queries
        .selectFrom('things')
        .selectAll()
        .where('name', '=', of.name)
        .where('size', '>', of.size)
        .where('name', '!=', of.name)
        .where('size', '<', 5n);
    });
    const first = find({ name: '__proto__', size: 1n });
    const second = find({ name: "'", size: null });
    expect(built).toBe(1);
    expect(first.sql).toBe(second.sql);
    expect(first.parameters).toEqual(['__proto__', 1n, '__proto__', 5n]);
    expect(second.parameters).toEqual(["'", null, "'", 5n]);
  });

  it('names a query by its text, so that no process knows another one by that name', () => {
    const find = (column: 'name' | 'size') =>
      prepared((of: { value: string }) =>
        queries
          .selectFrom('things')
          .selectAll()
          .where(column, '=', of.value as never),
      );
    const name = statementOf(find('name')({ value: 'a' }));
    expect(statementOf(find('size')({ value: 'a' }))).not.toBe(name);
    expect(statementOf(find('name')({ value: 'b' }))).toBe(name);
    // PostgreSQL cuts names off.
    expect(name?.length).toBeLessThan(64);
  });
});

it('preparedRows builds a query once for each common number of rows', () => {
  let built = 0;
  const add = preparedRows((rows: Tables['things'][]) => {
    built += 1;
    return queries.insertInto('things').values(rows.map(({ name, size }) => ({ name, size })));
  });
  const things = (many: number) =>
    Array.from({ length: many }, (_, at) => ({ name: `thing ${at}`, size: BigInt(at) }));
  for (const many of [1, 2, 1, 12, 2, 64, 64]) {
    expect(add(things(many)).parameters).toEqual(things(many).flatMap(({ name, size }) => [name, size]));
  }
  expect(built).toBe(4);
  expect(add(things(100)).parameters).toHaveLength(200);
  expect(add(things(100)).sql.match(/\?/g)).toHaveLength(200);
  expect(built).toBe(6);
});
