/**
 * The queries of a search. An index finds candidates, newest first, and the other conditions are checked on a
 * bounded number of them at a time: no query reads all decisions, however rare the matches are.
 */
import { type CompiledQuery, type Kysely, type RawBuilder, sql } from 'kysely';
import type { Tables } from '../../ledger/storage/schema.ts';
import { type DecisionOutcome, decisionRecordSchema } from '../record.ts';
import type { DecisionsQuery } from './contract.ts';
import { MEMBER_OPERATIONS } from './member-view.ts';
import { type ReadRow, UNKEPT } from './rows.ts';

/** The start of a page: after this decision. */
export interface Place {
  readonly at: bigint;
  readonly id: bigint;
}

type Condition = RawBuilder<unknown>;

/** The candidates: each branch follows an index. */
interface Plan {
  readonly table: 'decisions' | 'decision_filters';
  readonly branches: readonly Condition[];
  /** Conditions to check on candidates. */
  readonly rest: readonly Condition[];
}

const OUTCOMES: readonly DecisionOutcome[] = decisionRecordSchema.shape.outcome.options;
/** Each branch is a separate query. */
const MOST_BRANCHES = 150;

export class Search {
  readonly #queries: Kysely<Tables>;
  readonly #query: DecisionsQuery;
  readonly #plan: Plan | undefined;

  constructor(queries: Kysely<Tables>, query: DecisionsQuery) {
    this.#queries = queries;
    this.#query = query;
    this.#plan = planOf(query);
  }

  /** Whether nothing can match. */
  get isEmpty(): boolean {
    return this.#plan === undefined;
  }

  /** Whether every candidate matches. */
  get isExact(): boolean {
    return this.#plan?.rest.length === 0;
  }

  /** The first `limit` matches among the next `window` candidates. */
  found(after: Place | undefined, window: number, limit: number): CompiledQuery<Place> {
    const rest = this.#plan?.rest ?? [];
    return sql<Place>`
      select c.at, c.id from (${this.#candidates(after, window)}) as c
      ${rest.length === 0 ? sql`` : sql`join decisions as d on d.id = c.id where ${all(rest)}`}
      order by c.at desc, c.id desc limit ${limit}`.compile(this.#queries);
  }

  /** The last of the next `window` candidates; no row = there are fewer. */
  edge(after: Place | undefined, window: number): CompiledQuery<Place> {
    return sql<Place>`
      select c.at, c.id from (${this.#candidates(after, window)}) as c
      order by c.at desc, c.id desc limit 1 offset ${window - 1}`.compile(this.#queries);
  }

  #candidates(after: Place | undefined, window: number): RawBuilder<unknown> {
    const { table, branches } = this.#plan ?? { table: 'decisions', branches: [] };
    const { since, until } = this.#query;
    const id = sql.ref(table === 'decisions' ? 'id' : 'decision');
    const bounds = [
      ...(since === undefined ? [] : [sql`at >= ${micros(since)}`]),
      ...(until === undefined ? [] : [sql`at < ${micros(until)}`]),
      ...(after === undefined ? [] : [sql`(at, ${id}) < (${after.at}, ${after.id})`]),
    ];
    const parts = branches.map((branch) => {
      const conditions = [branch, ...bounds];
      return sql`select * from (select at, ${id} as id from ${sql.table(table)} where ${all(conditions)} order by at desc, ${id} desc limit ${window}) as b`;
    });
    return parts.length === 1
      ? (parts[0] as RawBuilder<unknown>)
      : sql`${sql.join(parts, sql` union all `)} order by at desc, id desc limit ${window}`;
  }
}

/** Whole rows, in any order. */
export function rowsOf(queries: Kysely<Tables>, ids: readonly bigint[]): CompiledQuery<ReadRow> {
  return queries
    .selectFrom('decisions')
    .select(['id', 'at', 'asked_start', 'asked_end', 'replica', 'record'])
    .where('id', 'in', ids)
    .compile();
}

function planOf(asked: DecisionsQuery): Plan | undefined {
  const query = {
    ...asked,
    visible: asked.visible?.filter(isKept),
    projects: asked.projects?.filter(isKept),
    users: asked.users?.filter(isKept),
    filters: asked.filters?.filter(isKept),
  };
  const { visible, leaseId, requestId, newerThan, users, filters, outcomes, operations, sides } = query;
  const projects = projectsOf(query);
  if (![leaseId ?? '', requestId ?? ''].every(isKept)) {
    return undefined;
  }
  if (
    projects?.length === 0 ||
    [query.projects, users, filters, outcomes, operations, sides].some((one) => one?.length === 0)
  ) {
    return undefined;
  }
  /** Whether the branches already compare the projects. */
  const areIds = !query.projects?.some(isLabel);
  const rest = {
    visible: visible && [
      sql`d.project_id in (${sql.join(visible)})`,
      sql`d.operation in (${sql.join(MEMBER_OPERATIONS)})`,
    ],
    projects: query.projects && [account('project', query.projects)],
    users: users && [account('user', users)],
    filters: filters && [
      sql`exists (select 1 from decision_filters as f where f.decision = d.id and f.filter in (${sql.join(filters)}))`,
    ],
    outcomes: outcomes && [sql`d.outcome in (${sql.join(outcomes)})`],
    operations: operations && [sql`d.operation in (${sql.join(operations)})`],
    // Quotes in texts are escaped: only the field itself matches.
    sides: sides && [
      sql`(${sql.join(
        sides.map((side) => sql`d.record like ${`%"side":"${side}"%`}`),
        sql` or `,
      )})`,
    ],
    leaseId: leaseId === undefined ? undefined : [sql`d.lease_id = ${leaseId}`],
    requestId: requestId === undefined ? undefined : [sql`d.request_id = ${requestId}`],
    newerThan: newerThan === undefined ? undefined : [sql`d.id > ${newerThan}`],
  };
  const plan = (
    branches: readonly Condition[],
    done: readonly (keyof typeof rest)[],
    table: Plan['table'] = 'decisions',
  ): Plan | undefined =>
    branches.length > MOST_BRANCHES
      ? undefined
      : {
          table,
          branches,
          rest: Object.entries(rest).flatMap(([name, conditions]) =>
            conditions === undefined || done.some((one) => one === name) ? [] : conditions,
          ),
        };
  const candidates = () => {
    if (newerThan !== undefined) {
      return plan([sql`id > ${newerThan}`], ['newerThan']);
    }
    if (requestId !== undefined) {
      return plan([sql`request_id = ${requestId}`], ['requestId']);
    }
    if (leaseId !== undefined) {
      return plan([sql`lease_id = ${leaseId}`], ['leaseId']);
    }
    if (users !== undefined) {
      return plan(accountBranches('user', users, outcomes), ['users', ...unlabelled(users)]);
    }
    if (filters !== undefined) {
      // The table of filters has only ids of projects.
      const ids = visible === undefined && query.projects?.some(isLabel) ? undefined : projects;
      return plan(
        product(filters, ids).map(([filter, project]) =>
          project === undefined
            ? sql`filter = ${filter}`
            : sql`project_id = ${project} and filter = ${filter}`,
        ),
        ['filters', ...(ids !== undefined && areIds ? (['projects'] as const) : [])],
        'decision_filters',
      );
    }
    if (projects !== undefined) {
      const done = visible === undefined || areIds ? (['projects'] as const) : [];
      return plan(accountBranches('project', projects, outcomes), [...done, ...unlabelled(projects)]);
    }
    if (outcomes !== undefined && !outcomes.includes('allowed')) {
      // The index contains no other outcomes.
      return plan(
        outcomes.map((outcome) => sql`outcome = ${outcome} and outcome <> 'allowed'`),
        ['outcomes'],
      );
    }
    return undefined;
  };
  return candidates() ?? plan([sql`true`], []);
}

/** A text that no database stores matches nothing. */
function isKept(text: string): boolean {
  return !UNKEPT.test(text);
}

/**
 * The projects of the branches: requested and visible ones. A name can belong to any project, so it does not
 * narrow the visible ones.
 */
function projectsOf({ projects, visible }: DecisionsQuery): readonly string[] | undefined {
  if (visible === undefined || projects === undefined || projects.some(isLabel)) {
    return visible ?? projects;
  }
  return visible.filter((one) => projects.includes(one));
}

function isLabel(value: string): boolean {
  return value.includes('@');
}

/** A branch by name uses another index, without outcomes. */
function unlabelled(values: readonly string[]): 'outcomes'[] {
  return values.some(isLabel) ? [] : ['outcomes'];
}

/** By id, or by `name@domain`. */
function account(whose: 'project' | 'user', values: readonly string[]): Condition {
  const labels = values.filter(isLabel);
  const id = sql`${sql.ref(`d.${whose}_id`)} in (${sql.join(values)})`;
  return labels.length === 0 ? id : sql`(${id} or ${sql.ref(`d.${whose}_label`)} in (${sql.join(labels)}))`;
}

function accountBranches(
  whose: 'project' | 'user',
  values: readonly string[],
  outcomes: readonly DecisionOutcome[] = OUTCOMES,
): Condition[] {
  return [
    ...product(values, outcomes).map(
      ([value, outcome]) => sql`${sql.ref(`${whose}_id`)} = ${value} and outcome = ${outcome}`,
    ),
    ...values.filter(isLabel).map((value) => sql`${sql.ref(`${whose}_label`)} = ${value}`),
  ];
}

function product<One, Other>(
  ones: readonly One[],
  others: readonly Other[] | undefined,
): (readonly [One, Other | undefined])[] {
  const seconds: readonly (Other | undefined)[] = others ?? [undefined];
  return ones.flatMap((one) => seconds.map((other) => [one, other] as const));
}

function all(conditions: readonly Condition[]): RawBuilder<unknown> {
  return sql.join(conditions, sql` and `);
}

/** The end of a period may exceed 64 bits. */
function micros(milliseconds: number): bigint {
  return BigInt.asIntN(64, BigInt(Math.round(Math.min(Math.max(milliseconds, -9e15), 9e15)))) * 1000n;
}
