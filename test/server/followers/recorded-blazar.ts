/** A Blazar that answers what was recorded from a real one, and a ledger that follows it. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { onTestFinished } from 'vitest';
import { UsageBudgetFilter } from '../../../filters/usage-budget-filter.ts';
import { NO_KEYSTONE } from '../../../src/enforcement/keystone.ts';
import { createSharedServices } from '../../../src/enforcement/services.ts';
import { listBudgets } from '../../../src/ledger/budgets/budgets.ts';
import { claimantOf, ledgerRequest } from '../../../src/ledger/lease-request.ts';
import type { Ledger } from '../../../src/ledger/ledger.ts';
import type { Claimant } from '../../../src/ledger/ledger-request.ts';
import { ChainOutbox } from '../../../src/ledger/outbox/chain-outbox.ts';
import type { Reconciled } from '../../../src/ledger/reconciliation/change-lease.ts';
import { ChainLedger } from '../../../src/ledger/service.ts';
import { rows } from '../../../src/ledger/storage/database.ts';
import type { LeaseRow } from '../../../src/ledger/storage/schema.ts';
import type { Keystone } from '../../../src/openstack/contract.ts';
import { type Followed, type Following, follow } from '../../../src/server/followers/follow-blazar.ts';
import { headerKeystone } from '../../peers/header-keystone.ts';
import { projectFile } from '../../support/files.ts';
import { giveBudget, ledgerAt, NO_WAIT, newLedger } from '../../support/ledgers.ts';
import { recordingLogger } from '../../support/logger.ts';
import { listening } from '../../support/services.ts';

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** A lease in an answer of Blazar. */
export interface Listed {
  id: string;
  project_id: string;
  user_id: string;
  status: string;
  start_date: string;
  end_date: string;
  created_at: string;
  reservations: { id: string; resource_type: string; max?: number }[];
}

export function recorded(name: string): Answer {
  return JSON.parse(readFileSync(projectFile(`test/fixtures/blazar/${name}.json`), 'utf8')) as Answer;
}

export const NOW = '2026-11-22T09:00:00Z';

export class RecordedBlazar {
  readonly ledger: Ledger;
  readonly claimants: readonly Claimant[];
  readonly keystone: Keystone;
  now = NOW;
  /** Blazar's `os_region_name`. */
  region: string | null = 'RegionOne';
  /** Path → what is answered. */
  readonly answers = new Map<string, Answer | string>();
  /** Called before an answer is sent. */
  before: (path: string) => Promise<void> = async () => {};
  private constructor(ledger: Ledger, url: string, claimants: readonly Claimant[]) {
    this.ledger = ledger;
    this.keystone = headerKeystone(`${new URL(url).origin}/v1`);
    this.claimants = claimants;
    this.answers.set('/v1/leases', recorded('leases'));
    this.answers.set('/v1/os-hosts/allocations', recorded('allocations'));
    this.answers.set('/v1/os-hosts', recorded('hosts'));
  }

  /** All recorded leases were asked for a moment before Blazar created them. */
  static async asked(): Promise<RecordedBlazar> {
    const blazar = await RecordedBlazar.start();
    for (const lease of blazar.leases) {
      await blazar.ask(lease, `${lease.created_at.slice(0, 19).replace(' ', 'T')}Z`);
    }
    return blazar;
  }

  static async start(): Promise<RecordedBlazar> {
    let blazar: RecordedBlazar | undefined;
    const server = createServer(async (request, response) => {
      const path = request.url ?? '';
      await blazar?.before(path);
      const answer = blazar?.answers.get(path) ?? { status: 404, headers: {}, body: '' };
      const { status, headers, body } =
        typeof answer === 'string' ? { status: 200, headers: {}, body: answer } : answer;
      response.sendDate = false;
      response.writeHead(status, { date: new Date(blazar?.now ?? NOW).toUTCString(), ...headers });
      response.end(typeof body === 'string' ? body : JSON.stringify(body));
    });
    const { url } = await listening(server, [], 'http', 0);
    const ledger = await ledgerAt(await newLedger(), { now: () => blazar?.now ?? NOW });
    const shared = createSharedServices({ logger: recordingLogger() });
    const chain = new ChainLedger(
      { connection: '', commit: 'check', timeout: 1, pool_size: 1 },
      { ...shared, observer: undefined },
    );
    const filter = new UsageBudgetFilter(
      UsageBudgetFilter.options.parse({
        usage_budget_rates: { 'physical:host': 1, 'virtual:instance': 0.1 },
      }),
      {
        ...shared,
        ledger: chain,
        outbox: new ChainOutbox({ ledger: chain, logger: shared.logger, observer: undefined }),
        keystone: NO_KEYSTONE,
      },
    );
    blazar = new RecordedBlazar(ledger, url, [claimantOf(filter, 'UsageBudgetFilter', false)]);
    for (const projectId of ['climate', 'physics']) {
      await giveBudget(ledger, { projectId, amount: '100000', from: '2026-01-01', until: '2040-01-01' });
    }
    const { keystone } = blazar;
    onTestFinished(async () => {
      await ledger.close();
      await keystone.close();
    });
    return blazar;
  }

  /** The leases of the answer, to be changed. */
  get leases(): [Listed, Listed, Listed, ...Listed[]] {
    const answer = this.answers.get('/v1/leases');
    return (answer as { body: { leases: [Listed, Listed, Listed] } }).body.leases;
  }

  /** The first lease, which is in use. */
  activeLease(): Listed {
    const [lease] = this.leases;
    Object.assign(lease.reservations[0] ?? {}, { status: 'active' });
    return lease;
  }

  /** The first lease has no hosts any more. */
  loseHosts(): void {
    const { body, ...answer } = recorded('allocations');
    const { allocations } = body as { allocations: { reservations: { lease_id: string }[] }[] };
    const left = allocations.map((host) => ({
      ...host,
      reservations: host.reservations.filter(({ lease_id }) => !lease_id.startsWith('00000001')),
    }));
    this.answers.set('/v1/os-hosts/allocations', { ...answer, body: { allocations: left } });
  }

  /** Blazar does not have the first lease any more. */
  loseLease(): void {
    this.leases.shift();
    this.loseHosts();
  }

  /** As Blazar asks before it creates a lease: without an id. */
  async ask(lease: Listed, recordedAt: string, more: Readonly<Record<string, unknown>> = {}): Promise<void> {
    const now = this.now;
    this.now = recordedAt;
    const { project_id, user_id, start_date, end_date, reservations } = lease;
    const context = { project_id, user_id, region_name: this.region };
    const request = { context, lease: { name: 'run', start_date, end_date, reservations, ...more } };
    await this.#commit('create', request);
    this.now = now;
  }

  /** As Blazar asks before it changes a lease, now. */
  async askChange(lease: Listed, change: Partial<Listed>): Promise<void> {
    const { id, project_id, user_id, start_date, end_date, reservations } = lease;
    const context = { project_id, user_id, region_name: this.region };
    const currentLease = { id, name: 'run', start_date, end_date, reservations };
    const request = { context, currentLease, lease: { ...currentLease, ...change } };
    await this.#commit('update', request);
  }

  async #commit(operation: 'create' | 'update', request: Parameters<typeof ledgerRequest>[0]): Promise<void> {
    const author = { operation, who: request.context.user_id, requestId: null, reason: null };
    const { refusal } = await this.ledger.commit(ledgerRequest(request, this.claimants), author, NO_WAIT);
    if (refusal !== undefined) {
      throw new Error(refusal.message);
    }
  }

  async round(
    others: Partial<Following> = {},
  ): Promise<{ followed: Followed; changes: string[]; kept: string[] }> {
    const done: Reconciled[] = [];
    const followed = await follow({
      ledger: this.ledger,
      keystone: this.keystone,
      endpoint: undefined,
      region: undefined,
      claimants: this.claimants,
      exemptProjects: [],
      grace: 600,
      isDryRun: false,
      holder: 'a test',
      every: 0,
      who: 'a test',
      reason: null,
      signal: undefined,
      report: (one) => done.push(one),
      ...others,
    });
    const texts = (isLeft: boolean) =>
      done
        .filter(({ outcome }) => (outcome === 'left') === isLeft)
        .map(({ outcome, row, note }) => `${outcome} #${row}: ${note}`);
    return { followed, changes: texts(false), kept: texts(true) };
  }

  open(): Promise<LeaseRow[]> {
    const query = this.ledger.database.queries
      .selectFrom('leases')
      .selectAll()
      .where('state', '=', 'open')
      .orderBy('id');
    return this.ledger.read('read', () => rows(query.compile()), NO_WAIT);
  }

  /** In unit-hours. */
  async taken(project = 'climate'): Promise<number> {
    const [budget] = await listBudgets(this.ledger, project, NO_WAIT);
    return Number(budget?.taken ?? 0n) / 3_600_000_000;
  }
}
