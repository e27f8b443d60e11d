/** A policy service with the invented cloud in its ledger. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseUnitHours } from '../../src/filter/claim.ts';
import { createLogger, UsageEnforcement } from '../../src/index.ts';
import { setBudget } from '../../src/ledger/budgets/budgets.ts';
import { openLedger } from '../../src/ledger/open.ts';
import { parseConnection } from '../../src/ledger/storage/connection.ts';
import { upgradeTables } from '../../src/ledger/storage/migrations/index.ts';
import { startService } from '../../src/server/service.ts';
import { BUDGETS, type LeaseForm, PAST, PROJECT, TODAY } from './invented.ts';

export const OPERATOR_TOKEN = 'operator-of-the-pictures';
const BLAZAR_TOKEN = 'blazar-of-the-pictures';
const DAY = 86_400_000;
/** Start and end of budgets, in days before and after now. */
const BEFORE = 30;
const AFTER = 60;

export interface Cloud {
  readonly url: string;
  /** A date of a lease, in Blazar's format. */
  dateOf(days: number): string;
  close(): Promise<void>;
}

/** Records past leases with a clock that is set back; today's requests are sent over HTTP. */
export async function startCloud(folder: string): Promise<Cloud> {
  const now = Math.floor(Date.now() / 3_600_000) * 3_600_000;
  const dateOf = (days: number) => new Date(now + days * DAY).toISOString().slice(0, 19);
  const connection = `sqlite://${join(folder, 'ledger.db')}`;
  const sources = { configFiles: [writeConfiguration(folder, connection)], environment: {} };
  await giveBudgets(connection, now);
  for (const [index, wish] of PAST.entries()) {
    const clock = { now: () => new Date(now + (wish.start - 1) * DAY) };
    const enforcement = await UsageEnforcement.load(sources, { clock });
    await enforcement.checkCreate(requestOf(wish, dateOf, leaseId(index)));
    await enforcement.close();
  }
  const service = await startService(sources, { logger: createLogger('silent') });
  for (const wish of TODAY) {
    await fetch(`${service.url}/check-create`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-Auth-Token': BLAZAR_TOKEN },
      body: JSON.stringify(requestOf(wish, dateOf)),
    });
  }
  return {
    url: service.url,
    dateOf,
    close: async () => {
      await service.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The id of a past lease. */
export function leaseId(index: number): string {
  return `6f1c2b7a-4d0e-4b8e-9a51-${String(index).padStart(12, '0')}`;
}

function requestOf(wish: LeaseForm, dateOf: (days: number) => string, id?: string) {
  const { project = PROJECT, user, name, start, days, hosts } = wish;
  return {
    context: { user_id: user, project_id: project },
    lease: {
      ...(id !== undefined && { id }),
      name,
      start_date: dateOf(start),
      end_date: dateOf(start + days),
      reservations: [{ resource_type: 'physical:host', min: hosts, max: hosts }],
    },
  };
}

function writeConfiguration(folder: string, connection: string): string {
  const file = join(folder, 'blazar.conf');
  const text = `[enforcement]
enabled_filters = MaxLeaseDurationFilter, MaxReservationSizeFilter, UsageBudgetFilter
max_lease_duration = 604800
max_reservation_size = physical:host:8

[ledger]
connection = ${connection}
doubt_folder =

[service]
port = 0
tokens = ${BLAZAR_TOKEN}
operator_tokens = ${OPERATOR_TOKEN}
`;
  writeFileSync(file, text, { mode: 0o600 });
  return file;
}

async function giveBudgets(url: string, now: number): Promise<void> {
  const connection = parseConnection(url);
  if (connection === undefined) {
    throw new Error('expected a connection');
  }
  await upgradeTables(connection);
  const clock = { now: () => new Date(now - BEFORE * DAY) };
  const opened = openLedger(
    { connection: url, commit: 'check', timeout: 10, pool_size: 1 },
    { clock, observer: undefined },
  );
  await opened.verify();
  const midnight = (days: number) => BigInt((Math.floor(now / DAY) + days) * (DAY / 1000));
  for (const { project, user, amount } of BUDGETS) {
    const wanted = {
      projectId: project,
      userId: user,
      amount: parseUnitHours(amount) ?? 0n,
      validFrom: midnight(-BEFORE),
      validUntil: midnight(AFTER),
    };
    const author = { who: 'operator', reason: 'grant of this quarter' };
    await setBudget(opened.ledger, wanted, author, { signal: undefined, throwIfOver() {} });
  }
  await opened.ledger.close();
}
