/** Responses of a service about projects, as `project` prints them. */
import { z } from 'zod';
import { account, allOf, projectIdOf, understood } from '../common/answers.ts';
import { namedCell } from '../common/command-names.ts';
import { type EndpointFlags, withEndpoint } from '../common/endpoint.ts';
import { printItems, printJson, printRows, warn } from '../common/output.ts';

export interface Flags extends EndpointFlags {
  readonly endpoint: string;
  readonly format: 'table' | 'json';
}

export interface ListFlags extends Flags {
  readonly search?: string;
}

export interface DecisionsFlags extends Flags {
  readonly outcome?: 'allowed' | 'refused' | 'rejected' | 'failed';
  readonly limit: number;
}

/** The page size of requests. */
const PAGE = 1000;

const cell = (of: z.infer<typeof account> | null) => namedCell(of?.id, of ?? {});

const listed = z.looseObject({
  project: account,
  open_leases: z.int(),
  budget: z
    .looseObject({ amount: z.string(), taken: z.string(), left: z.string(), until: z.string() })
    .nullable(),
});

export async function list(flags: ListFlags): Promise<void> {
  const query = { limit: PAGE, ...(flags.search !== undefined && { search: flags.search }) };
  await withEndpoint(flags.endpoint, flags, async (client) => {
    const found = await allOf(listed, client.items('/v1/projects', { query }));
    await printItems(found, flags.format, (one) => one, {
      PROJECT: ({ project }) => cell(project),
      'OPEN LEASES': ({ open_leases }) => open_leases,
      BUDGET: ({ budget }) => budget?.amount,
      TAKEN: ({ budget }) => budget?.taken,
      LEFT: ({ budget }) => budget?.left,
      UNTIL: ({ budget }) => budget?.until,
    });
  });
}

const shown = z.looseObject({
  unit: z.string(),
  budgets: z.array(
    z.looseObject({
      user: account.nullable(),
      valid_from: z.string(),
      valid_until: z.string(),
      amount: z.string(),
      taken: z.string(),
      planned: z.string().nullable(),
      left: z.string(),
    }),
  ),
  has_more_budgets: z.boolean(),
  open_leases: z.array(
    z.looseObject({
      row: z.string(),
      lease_id: z.string().nullable(),
      user: account,
      name: z.string(),
      start: z.string(),
      end: z.string(),
      state: z.string(),
      cost: z.string(),
    }),
  ),
  has_more_open_leases: z.boolean(),
});

export async function show(project: string, flags: Flags): Promise<void> {
  await withEndpoint(flags.endpoint, flags, async (client) => {
    const path = { project_id: await projectIdOf(client, project) };
    const { data } = await client.GET('/v1/projects/{project_id}', { params: { path } });
    const { unit, budgets, open_leases: leases, ...more } = understood(shown, data);
    if (flags.format === 'json') {
      printJson(data);
      return;
    }
    await printRows(budgets, {
      USER: ({ user }) => cell(user),
      FROM: (one) => one.valid_from,
      UNTIL: (one) => one.valid_until,
      [unit.toUpperCase()]: ({ amount }) => amount,
      TAKEN: ({ taken }) => taken,
      PLANNED: ({ planned }) => planned,
      LEFT: ({ left }) => left,
    });
    process.stdout.write('\n');
    await printRows(leases, {
      ROW: ({ row }) => `#${row}`,
      LEASE: (one) => one.lease_id,
      USER: ({ user }) => cell(user),
      NAME: ({ name }) => name,
      START: ({ start }) => start,
      END: ({ end }) => end,
      STATE: ({ state }) => state,
      COST: ({ cost }) => cost,
    });
    if (more.has_more_budgets) {
      warn('there are more budgets: see budget list --endpoint');
    }
    if (more.has_more_open_leases) {
      warn('there are more open leases: see ledger list --endpoint');
    }
  });
}

const decided = z.looseObject({
  time: z.string(),
  outcome: z.string(),
  operation: z.string(),
  user: account.nullable(),
  lease_id: z.string().nullable(),
  lease_name: z.string().nullable(),
  filter: z.string().nullable(),
  message: z.string().nullable(),
});

export async function decisions(project: string, flags: DecisionsFlags): Promise<void> {
  const { outcome, limit, format } = flags;
  await withEndpoint(flags.endpoint, flags, async (client) => {
    const query = { limit: Math.min(limit, PAGE), ...(outcome !== undefined && { outcome }) };
    const items: z.infer<typeof decided>[] = [];
    const path = { project_id: await projectIdOf(client, project) };
    for await (const one of client.items('/v1/projects/{project_id}/decisions', { path, query })) {
      items.push(understood(decided, one));
      if (items.length === limit) {
        break;
      }
    }
    await printItems(items, format, (one) => one, {
      TIME: ({ time }) => time,
      OUTCOME: (one) => one.outcome,
      OPERATION: ({ operation }) => operation,
      USER: ({ user }) => cell(user),
      LEASE: (one) => one.lease_name ?? one.lease_id,
      FILTER: ({ filter }) => filter,
      MESSAGE: ({ message }) => message,
    });
  });
}
