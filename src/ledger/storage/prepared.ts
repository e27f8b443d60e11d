/**
 * Queries that are built once and run many times. kysely takes about ten microseconds to build a query, and a
 * lease needs about ten queries, which differ only in their values.
 */
import { createHash } from 'node:crypto';
import type { Compilable, CompiledQuery } from 'kysely';

class Placeholder {
  readonly row: number;
  readonly name: string;

  constructor(row: number, name: string) {
    this.row = row;
    this.name = name;
  }
}

type Placeholders<Values> = { readonly [Name in keyof Values]: Values[Name] };

const STATEMENTS = new WeakMap<object, string>();

/**
 * The name of a query that runs many times, whatever its values. `undefined` = built for one use. Names are
 * unique per text, in any process: if a pooler lends a session with statements of another process, none is
 * mistaken for another.
 */
export function statementOf({ query }: CompiledQuery): string | undefined {
  return STATEMENTS.get(query);
}

function named<Row>(template: CompiledQuery<Row>): CompiledQuery<Row> {
  STATEMENTS.set(
    template.query,
    `ledger_${createHash('sha256').update(template.sql).digest('hex').slice(0, 32)}`,
  );
  return template;
}

/** `build` is called once, with a placeholder for each value. */
export function prepared<Values extends object, Row>(
  build: (values: Placeholders<Values>) => Compilable<Row>,
): (values: Values) => CompiledQuery<Row> {
  let template: CompiledQuery<Row> | undefined;
  return (values) => {
    template ??= named(build(standIns<Values>(0)).compile());
    return filled(template, [values]);
  };
}

/** Like `prepared`, for several rows at once: built once per number of rows. */
export function preparedRows<Values extends object, Row>(
  build: (rows: Placeholders<Values>[]) => Compilable<Row>,
): (rows: readonly Values[]) => CompiledQuery<Row> {
  const templates = new Map<number, CompiledQuery<Row>>();
  return (rows) => {
    let template = templates.get(rows.length);
    if (template === undefined) {
      template = build(rows.map((_, row) => standIns<Values>(row))).compile();
      if (rows.length <= KEPT_ROWS) {
        templates.set(rows.length, named(template));
      }
    }
    return filled(template, rows);
  };
}

/** Queries for more rows are built each time: few leases touch more accounts. */
export const KEPT_ROWS = 64;

/** Each size is a separate statement: powers of two keep their number small. */
export function inFewSizes<Row>(rows: readonly Row[]): Row[][] {
  const all: Row[][] = [];
  for (let start = 0, size = KEPT_ROWS; start < rows.length; start += size) {
    while (size > rows.length - start) {
      size /= 2;
    }
    all.push(rows.slice(start, start + size));
  }
  return all;
}

function standIns<Values>(row: number): Placeholders<Values> {
  const known = new Map<string, Placeholder>();
  return new Proxy(
    {},
    {
      get(_, key) {
        const name = String(key);
        const standIn = known.get(name) ?? new Placeholder(row, name);
        known.set(name, standIn);
        return standIn;
      },
    },
  ) as Placeholders<Values>;
}

function filled<Row>(template: CompiledQuery<Row>, rows: readonly object[]): CompiledQuery<Row> {
  const { query, queryId, sql, parameters } = template;
  return {
    query,
    queryId,
    sql,
    parameters: parameters.map((value) =>
      value instanceof Placeholder
        ? (rows[value.row] as Readonly<Record<string, unknown>> | undefined)?.[value.name]
        : value,
    ),
  };
}
