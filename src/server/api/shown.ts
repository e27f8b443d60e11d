/** How the API formats ids, amounts, times and lists: parts that all routes share, with their schemas. */
import { z } from 'zod';
import type { Deadline } from '../../base/deadline.ts';
import { budgetUnit } from '../../enforcement/configuration.ts';
import { type Amount, formatUnitHours } from '../../filter/claim.ts';
import type { Named } from '../../filter/verdict.ts';
import { formatInstant, MICROSECONDS_PER_SECOND, toInstant } from '../../lease/dates.ts';
import type { FoldedTotals } from '../../ledger/folding/totals.ts';
import type { PageOf } from '../../ledger/reports/pages.ts';
import type { Generation } from '../configuration/generation.ts';
import { bodySchemas } from '../openapi/bodies.ts';
import { ApiError, type ApiExample } from './route.ts';

export const accountSchema = z
  .strictObject({
    id: z.string(),
    name: z.string().nullable().meta({ description: 'The name in Keystone; null = not known.' }),
    domain: z.string().nullable().meta({ description: "The name of the account's domain." }),
  })
  .meta({ description: 'A project or a user.' });

export function accountJson(id: string, named: Named | undefined): z.infer<typeof accountSchema> {
  return { id, name: named?.name ?? null, domain: named?.domain || null };
}

export const timeSchema = z
  .string()
  .meta({ description: 'ISO 8601, UTC.', examples: ['2026-12-01T09:00:00Z'] });

export const amountSchema = z
  .string()
  .regex(/^-?\d+(\.\d{1,4})?$/)
  .meta({ description: 'Unit-hours, such as node-hours: a decimal number.', examples: ['1234.5'] });

/** An error of a route, besides those of every route. */
export function refusedAs(
  status: number,
  description: string,
  headers: ApiExample['headers'] = {},
): ApiExample {
  return { status, description, schema: bodySchemas.Problem, name: 'Problem', headers };
}
export const WITHOUT_LEDGER = refusedAs(404, 'No filter that needs a ledger is enabled.');
export const UNNAMED = refusedAs(422, 'Keystone has no account of this name.');

/** A response with one page of a list; `more`: its members besides the list. */
export function pageAnswer(
  item: z.ZodType,
  name: string,
  description = 'A page.',
  more: z.ZodRawShape = {},
): ApiExample {
  const schema = z.strictObject({
    items: z.array(item),
    next: z.string().nullable().meta({
      description:
        'Send it as `after` for the next page. null = this is the last one. Only this shows whether there are more.',
    }),
    ...more,
  });
  return { status: 200, description, schema, name };
}

const MOST = 1000;
const PAGE = 50;
const WHOLE = 'expected a whole number from 1 to 1000';

const pageParameters = {
  limit: z
    .string()
    .regex(/^[1-9]\d{0,3}$/, WHOLE)
    .transform(Number)
    .refine((limit) => limit <= MOST, WHOLE)
    .optional()
    .meta({
      type: 'integer',
      minimum: 1,
      maximum: MOST,
      pattern: undefined,
      description: `Maximum number of items. Default: ${PAGE}.`,
    }),
  after: z.string().max(4000, 'expected the cursor of the page before').optional().meta({
    description: '`next` of the page before.',
  }),
};

export function listQuery<Own extends z.ZodRawShape>(own: Own) {
  return z.strictObject({ ...pageParameters, ...own });
}

export function pageQueryOf(query: { limit?: number | undefined; after?: string | undefined }) {
  return { limit: query.limit ?? PAGE, after: query.after };
}

export function pageJson<Item>({ items, next }: PageOf<Item>, json: (item: Item) => object) {
  return { items: items.map(json), next: next ?? null };
}

/** A page whose items need the names of their owners. */
export async function namedPage<Item extends Owner>(
  asking: Asking,
  page: PageOf<Item>,
  json: (item: Item, accounts: Accounts) => object,
) {
  const accounts = await accountsOf(asking, page.items);
  return pageJson(page, (item) => json(item, accounts));
}

/** Maximum length of a text in the ledger; no id of OpenStack is longer. */
const LONGEST = 255;
const UNKEPT = /\0|\p{Surrogate}/u;

export const textSchema = z
  .string()
  .min(1, 'expected a text')
  .max(LONGEST, `expected at most ${LONGEST} characters`)
  .refine((text) => !UNKEPT.test(text), 'expected a text without NUL and without halves of surrogate pairs');

export function textParameter(description: string) {
  return textSchema.optional().meta({ description });
}

/** Filter by project; `what`: the items of the list. */
export const ofProject = (what = 'items ') =>
  textParameter(`Only ${what}of this project: its id, or name@domain.`);
/** Filter by user; `what`: the relation of the items to the user. */
export const ofUser = (what = 'items of') =>
  textParameter(
    `Only ${what} this user: the id, or name@domain; for members who cannot set budgets, only their own.`,
  );

/** From year 1 to 9999: other dates are rejected without a query. */
const FIRST = -62_135_596_800_000_000n;
const LAST = 253_402_300_800_000_000n;

/** A time, in microseconds of the epoch. */
export function timeParameter(description: string) {
  return z
    .string()
    .transform((text, context) => {
      const instant = toInstant(text);
      if (instant === undefined || instant < FIRST || instant >= LAST) {
        context.addIssue({
          code: 'custom',
          message:
            'expected an ISO 8601 date, such as 2026-12-01 or 2026-12-01T09:00:00Z (a + in an address is %2B)',
        });
        return z.NEVER;
      }
      return instant;
    })
    .optional()
    .meta({ description: `${description} ISO 8601; without an offset it means UTC.` });
}

/** @throws ApiError unless the span ends after it begins */
export function requireOrder(from: bigint | undefined, until: bigint | undefined): void {
  if (from !== undefined && until !== undefined && from >= until) {
    throw new ApiError(400, 'expected a time after from', { field: 'until' });
  }
}

/** The id in the path of a route. @throws ApiError for a text that cannot be an id */
export function pathId(params: Readonly<Record<string, string>>, name: string): string {
  const id = params[name] ?? '';
  if (id === '' || id.length > LONGEST || UNKEPT.test(id)) {
    throw new ApiError(400, `expected an id of at most ${LONGEST} characters`, { field: name });
  }
  return id;
}

/** The number of a row, as the API writes it. No row has the number 0, which other texts become. */
export function rowNumber(text: string): bigint {
  return /^\d{1,18}$/.test(text) ? BigInt(text) : 0n;
}

/** Rounded down to the second. */
export function secondOf(instant: bigint): bigint {
  return instant / MICROSECONDS_PER_SECOND;
}

/** Costs and usage: rounded up. */
export function costText(amount: Amount): string {
  return formatUnitHours(amount, 'up');
}

/** Remainders: rounded down. */
export function leftText(amount: Amount): string {
  return formatUnitHours(amount, 'down');
}

/** `instant`: microseconds of the epoch. */
export const timeText = formatInstant;

export type Accounts = Awaited<ReturnType<typeof accountsOf>>;

/** Maximum wait for names, in milliseconds; less if the deadline is near. */
const NAMES_WAIT = 1000;

interface Owner {
  readonly projectId?: string | null | undefined;
  readonly userId?: string | null | undefined;
}

interface Asking {
  readonly generation: Pick<Generation, 'enforcement' | 'configuration'>;
  readonly deadline: Pick<Deadline, 'milliseconds'>;
}

/** Looks up the names of these projects and users, as far as Keystone returns them in time. Never fails. */
export async function learnNames({ generation, deadline }: Asking, owners: readonly Owner[]): Promise<void> {
  const projects = new Set(owners.flatMap(({ projectId }) => projectId ?? []));
  const users = new Set(owners.flatMap(({ userId }) => userId ?? []));
  const wait = Math.min(NAMES_WAIT, deadline.milliseconds / 4);
  await generation.enforcement.names?.learn(projects, users, wait);
}

/** These projects and users with their names. */
export async function accountsOf(asking: Asking, owners: readonly Owner[]) {
  await learnNames(asking, owners);
  const { enforcement, configuration } = asking.generation;
  const { names } = enforcement;
  const of = (kind: 'project' | 'user') => (id: string) =>
    accountJson(id, names?.known({ project_id: id, user_id: id })[kind]);
  const project = of('project');
  const user = of('user');
  return {
    project,
    user,
    unit: budgetUnit(configuration),
    /** The owner of a budget: a project, or a user in it. */
    owner: ({ projectId, userId }: { readonly projectId: string; readonly userId: string | null }) => ({
      project: project(projectId),
      user: userId === null ? null : user(userId),
    }),
  };
}

/** For the project or the whole ledger, regardless of the filters of the list. */
export const foldedSchema = z
  .strictObject({
    leases: z.int().meta({ description: 'Number of leases.' }),
    before: timeSchema.meta({ description: 'All of them had ended before this time.' }),
  })
  .nullable()
  .meta({
    description:
      'Older leases that `ledger compact` has folded into totals. Balances and budgets include them; they, their entries and their usage are not listed. null = none.',
  });

export function foldedJson(folded: FoldedTotals | undefined): z.infer<typeof foldedSchema> {
  return folded === undefined ? null : { leases: Number(folded.leases), before: timeText(folded.until) };
}
