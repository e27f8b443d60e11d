/**
 * A complete policy service for Blazar's ExternalServiceFilter: every project has a budget of node-hours.
 * Blazar posts each lease here. 204 allows it; 403 rejects it, with the reason for the user in `message`.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { existsSync, realpathSync } from 'node:fs';
import { METHODS } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { bodyParser } from '@koa/bodyparser';
import Router from '@koa/router';
import Koa from 'koa';
import { DateTime } from 'luxon';
import { z } from 'zod';

const HOUR = 3_600_000;

/**
 * Replace this function with your own rule and keep the three hooks. A check returns the reason for a rejection, or
 * nothing to allow the lease. It contains no `await`, so that two requests cannot spend the same hour.
 */
function nodeHours(budget: number, now: () => number) {
  const left = new Map<string, number>(); // per project, in node-milliseconds: integers keep sums exact
  const bills = new Map<string, Bill>(); // per lease
  const unnamed = new Map<string, Bill[]>(); // of new leases, which have no id yet

  function findBill({ id, key }: Names, cost: number): Bill | undefined {
    const waiting = unnamed.get(key) ?? [];
    const same = waiting.findIndex((bill) => bill.cost === cost); // Blazar allows two leases with the same name; -1 takes the latest
    const bill = bills.get(id) ?? waiting.splice(same, 1)[0];
    if (bill) bills.set(id, bill);
    return bill;
  }

  /** Changes the cost of a bill, or returns why the project cannot pay. Never refunds more than was paid. */
  function charge(project: string, bill: Bill, cost: number): string | undefined {
    const rest = left.get(project) ?? budget;
    const more = cost - bill.cost;
    if (more <= rest && Number.isSafeInteger(cost)) {
      const paid = Math.max(0, bill.paid + more);
      left.set(project, rest + bill.paid - paid);
      Object.assign(bill, { cost, paid });
      return undefined;
    }
    // In hundredths, with the price rounded up and the rest down: a rejection must not look affordable.
    const price = Math.ceil((more * 100) / HOUR) / 100;
    const purse = Math.floor((rest * 100) / HOUR) / 100;
    const what = bill.cost === 0 ? 'lease' : 'change';
    return `This ${what} costs ${price} node-hours, and the project has ${purse} of ${budget / HOUR} left.`;
  }

  return {
    /** Charges the whole lease, but only once if a repeated request has the same `Idempotency-Key`. */
    checkCreate({ context, lease, sent }: Request & { sent?: string }): string | undefined {
      const { project, key } = namesOf(context, lease);
      const cost = costOf(lease);
      if (sent && unnamed.get(key)?.some((bill) => bill.sent === sent && bill.cost === cost))
        return undefined;
      const bill = { cost: 0, paid: 0, sent };
      const refusal = charge(project, bill, cost);
      if (refusal === undefined) unnamed.set(key, [...(unnamed.get(key) ?? []), bill]);
      return refusal;
    },

    /** Charges or refunds the difference. An unknown lease has paid nothing yet. */
    checkUpdate({ context, current_lease, lease }: UpdateRequest): string | undefined {
      const names = namesOf(context, current_lease);
      const before = costOf(current_lease);
      const bill = findBill(names, before) ?? { cost: before, paid: 0 };
      bills.set(names.id, bill);
      return charge(names.project, bill, costOf(lease));
    },

    /** Refunds the time from now to the end. A repeated call, or an unknown lease, refunds nothing. */
    onEnd({ context, lease }: Request): undefined {
      const names = namesOf(context, lease);
      const bill = findBill(names, costOf(lease));
      const end_date = Math.max(lease.start_date, Math.min(lease.end_date, now()));
      if (bill) charge(names.project, bill, Math.min(bill.cost, costOf({ ...lease, end_date })));
    },
  };
}

type Bill = { cost: number; paid: number; sent?: string | undefined };
type Names = ReturnType<typeof namesOf>;

/** A new lease has no id: until it gets one, its owner, name and start identify it. */
function namesOf(context: Request['context'], lease: Lease) {
  const project = lease.project_id ?? context.project_id;
  const user = lease.user_id ?? context.user_id;
  // Short: a name has up to 8 MB, and is kept as long as the process runs.
  const key = digest(JSON.stringify([project, user, lease.name, lease.start_date])).toString('base64');
  return { project, key, id: lease.id ? JSON.stringify([project, lease.id]) : key };
}

/**
 * Counts the nodes that a reservation may get at most. Its allocations are candidates only: those of several
 * reservations of one type are those of the last, and those of an update are those of the current size.
 */
function costOf(lease: Lease): number {
  const nodes = lease.reservations.map(({ max, amount }) => Math.max(max ?? 1, amount ?? 1));
  return nodes.reduce((sum, count) => sum + count, 0) * (lease.end_date - lease.start_date);
}

// The fields of a request that this service reads. Others are ignored.
const Text = z.string().nullish();
const Count = z.coerce.number().int().min(1).nullish();
const Moment = z.string().transform(toMillis).refine(Number.isFinite, 'expected an ISO 8601 date');
const Properties = { resource_properties: Text, hypervisor_properties: Text }; // anything else lets Blazar fail halfway
const Reservation = z.object({ max: Count, amount: Count, status: Text, ...Properties });
const Lease = z
  .object({ id: Text, name: Text, user_id: Text, project_id: Text, start_date: Moment, end_date: Moment })
  .extend({ trust_id: z.any().optional(), events: z.any().optional() })
  // Counted first: each mistake is an object.
  .extend({ reservations: z.array(z.unknown()).max(500).pipe(z.array(Reservation)) })
  .refine((lease) => lease.start_date <= lease.end_date, { path: ['end_date'], error: 'before start_date' });
const Context = z.object({ project_id: z.string(), user_id: z.string() });
const Request = z.object({ context: Context, lease: Lease });
type Lease = z.infer<typeof Lease>;
type Request = z.infer<typeof Request>;
type UpdateRequest = Request & { current_lease: Lease };
const UpdateRequest = Request.extend({ current_lease: Lease }).superRefine((update, { addIssue }) => {
  for (const path of refusedChanges(update)) addIssue({ code: 'custom', path, message: 'cannot be changed' });
});

/**
 * What Blazar would change: the owner, who pays; what ends the lease; the start of one that has started, which keeps its
 * hosts before the new start; and one that has ended, whose new hosts would never be taken back.
 */
function refusedChanges({ context, current_lease, lease }: UpdateRequest): string[][] {
  const has = (...states: string[]) =>
    current_lease.reservations.some((r) => states.includes(r.status ?? ''));
  if (has('deleted')) return [['current_lease']];
  const start = has('active', 'error') ? ['start_date'] : [];
  const kept = ['id', 'user_id', 'project_id', 'trust_id', 'events', ...start];
  const before: Record<string, unknown> = { id: lease.id, ...context, ...current_lease };
  const after: Record<string, unknown> = { ...before, ...lease };
  return kept.filter((name) => !isDeepStrictEqual(after[name], before[name])).map((name) => ['lease', name]);
}

/** ISO 8601, or with Blazar's space instead of the T; UTC without an offset. NaN for an invalid date. */
function toMillis(text: string): number {
  if (!/^\d{4}-\d\d-\d\d/.test(text)) return Number.NaN;
  return DateTime.fromISO(text.replace(' ', 'T'), { zone: 'utc' }).toMillis();
}

/**
 * Blazar's documentation calls end_date end_time. What the `lease` of an update omits is the same as in
 * `current_lease`: attributes, reservations, and attributes of reservations, which have an id.
 */
function complete(body: unknown): unknown {
  if (!isRecord(body)) return body;
  const current_lease = withEndDate(body.current_lease);
  const lease = withEndDate(body.lease);
  if (!isRecord(current_lease) || !isRecord(lease)) return { ...body, current_lease, lease };
  const reservations = updated(current_lease.reservations, lease.reservations ?? []);
  return { ...body, current_lease, lease: { ...current_lease, ...lease, reservations } };
}

function updated(current: unknown, named: unknown): unknown {
  if (!Array.isArray(current) || !Array.isArray(named)) return named;
  if (named.length === 0) return current;
  const kept = new Map(current.filter(isRecord).map((one) => [one.id, one]));
  kept.delete(undefined); // without ids, the update names all reservations
  const changed = named.map((one) => (isRecord(one) ? { ...kept.get(one.id), ...one } : one));
  for (const one of changed) if (isRecord(one)) kept.delete(one.id);
  return [...changed, ...kept.values()];
}

function withEndDate(lease: unknown): unknown {
  return isRecord(lease) && !lease.end_date && lease.end_time
    ? { ...lease, end_date: lease.end_time }
    : lease;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const explain = ({ issues }: z.ZodError) =>
  issues
    .slice(0, 5)
    .map((i) => `${i.path.join('.') || 'body'}: ${i.message}`)
    .join('\n');
const digest = (text: string) => createHash('sha256').update(text).digest(); // equal lengths, so the comparison takes constant time

const readJson = bodyParser({
  enableTypes: ['json'],
  jsonLimit: '8mb', // a lease of 10,000 hosts has some 5 MB
  onError(error, ctx) {
    ctx.req.unpipe().resume(); // a client that is still sending would never read the response
    ctx.throw('status' in error ? Number(error.status) : 400, `body: ${error.message}`);
  },
});

/** The budget of each project, the required token (none: no check), and a clock in milliseconds since 1970. */
type Options = { budgetNodeHours?: number; token?: string | undefined; now?: () => number };

export function createApp({ budgetNodeHours = 100, token, now = Date.now }: Options = {}): Koa {
  const rule = nodeHours(Math.round(budgetNodeHours * HOUR), now);
  const router = new Router({ methods: METHODS });
  router.use((ctx, next) => {
    const allowed = token === undefined || timingSafeEqual(digest(ctx.get('X-Auth-Token')), digest(token));
    if (!allowed) ctx.throw(401, 'X-Auth-Token is missing or wrong');
    if (ctx.is('application/json') === false) ctx.throw(415, 'expected Content-Type: application/json');
    return next();
  }, readJson);
  route('/check-create', Request, rule.checkCreate);
  route('/check-update', UpdateRequest, rule.checkUpdate);
  route('/on-end', Request, rule.onEnd);

  function route<T>(path: string, schema: z.ZodType<T>, decide: (request: T) => string | undefined): void {
    router.post(path, (ctx) => {
      const request = schema.safeParse(complete(ctx.request.body));
      if (!request.success) return ctx.throw(400, explain(request.error));
      const message = decide({ ...request.data, sent: ctx.get('Idempotency-Key') });
      ctx.body = message === undefined ? null : { message };
      ctx.status = message === undefined ? 204 : 403;
    });
  }

  const app = new Koa();
  app.use(router.routes());
  app.use(router.allowedMethods());
  return app;
}

function fail(message: string): never {
  console.error(message);
  process.exit(2);
}

const started = process.argv[1] ?? '';
if (existsSync(started) && realpathSync(started) === fileURLToPath(import.meta.url)) {
  const Settings = z.object({
    PORT: z.coerce.number().int().min(0).max(65_535).default(8643),
    EXAMPLE_BUDGET_NODE_HOURS: z.coerce.number().min(0).max(1e9).default(100),
    EXAMPLE_TOKEN: z.string().min(1).optional(),
  });
  const { data, error } = Settings.safeParse(process.env);
  if (!data) fail(explain(error));
  const app = createApp({ budgetNodeHours: data.EXAMPLE_BUDGET_NODE_HOURS, token: data.EXAMPLE_TOKEN });
  const server = app.listen(data.PORT, '127.0.0.1', () => {
    console.log(`external-service-example: http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  });
  server.on('error', (error) => fail(error.message));
  for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => server.close());
}
