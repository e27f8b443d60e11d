/** A ledger with budgets, a double of SkyPilot's API server, and policies that charge launches there. */
import { expect, onTestFinished } from 'vitest';
import { withinDeadline } from '../../src/base/deadline.ts';
import { requireConfiguration } from '../../src/enforcement/configuration.ts';
import { notificationsSection } from '../../src/enforcement/notifications/options.ts';
import { createSharedServices } from '../../src/enforcement/services.ts';
import type { Amount } from '../../src/filter/claim.ts';
import { listBudgets } from '../../src/ledger/budgets/budgets.ts';
import { ledgerSection } from '../../src/ledger/options.ts';
import type { ReconciliationResult } from '../../src/ledger/reconciliation/leader-lease.ts';
import { listLeases } from '../../src/ledger/reports/reports.ts';
import { verifyLedger } from '../../src/ledger/reports/verify.ts';
import { SkypilotApiServer } from '../../src/skypilot/api-server.ts';
import { type ClusterChange, followSkypilot } from '../../src/skypilot/charging/follow.ts';
import { PolicyChain, type Review } from '../../src/skypilot/policies/policy-chain.ts';
import { skypilotSection } from '../../src/skypilot/section.ts';
import { valuesOnly } from '../support/files.ts';
import { giveBudget, ledgerAt, NO_WAIT, newLedger } from '../support/ledgers.ts';
import { recordingLogger } from '../support/logger.ts';
import { received } from '../support/skypilot.ts';
import { type ApiServerOptions, SkypilotApiDouble } from '../support/skypilot-api-server.ts';

export const NOW = Date.parse('2026-11-21T09:00:00Z') / 1000;
const HOUR = 3_600_000_000n;
/** For a review, in seconds: longer than forty at once take on a busy machine. */
const DEADLINE = 60;

export interface LabSetup {
  readonly connection?: string;
  readonly policies?: readonly string[];
  readonly options?: Readonly<Record<string, unknown>>;
  /** In GPU-hours, of the project `ml`; `undefined` = there is none. */
  readonly budget?: string;
  readonly api?: Partial<ApiServerOptions>;
  readonly recordsLaunches?: boolean;
  /** Whether a round has counted what is up. Default: yes, if a policy depends on it. */
  readonly isCounted?: boolean;
}

export interface LaunchSetup {
  readonly cluster?: string | null;
  readonly gpus?: string;
  readonly task?: string;
  readonly workspace?: string;
  readonly user?: string;
  readonly name?: string;
  readonly dryrun?: boolean;
  readonly atClientSide?: boolean;
  readonly config?: string;
}

export type Lab = Awaited<ReturnType<typeof openLab>>;

/** Closed after the test. */
export async function openLab(setup: LabSetup = {}) {
  const { policies = ['UsageBudgetPolicy'], options = {}, budget, api: apiOptions = {} } = setup;
  const connection = setup.connection ?? (await newLedger());
  const logger = recordingLogger();
  let seconds = NOW;
  const api = await SkypilotApiDouble.start({
    now: () => seconds,
    visible: ['default', 'ml', 'bio'],
    ...apiOptions,
  });
  const configuration = await requireConfiguration(
    valuesOnly({
      ledger: { connection },
      skypilot: { isolation: 'worker', admin_policies: policies, api_server: api.url, ...options },
    }),
    [skypilotSection, ledgerSection, notificationsSection],
  );
  const clock = { now: () => new Date(seconds * 1000) };
  const { recordsLaunches = true } = setup;
  const chain = await PolicyChain.fromConfiguration(configuration, { logger, clock, recordsLaunches });
  const ledger = await ledgerAt(connection, { now: () => clock.now().toISOString() });
  let closing: Promise<unknown> | undefined;

  /** Asks as SkyPilot's server does before it launches. */
  function ask(launch: LaunchSetup = {}): Promise<Review> {
    const {
      cluster = 'train',
      gpus = 'A100:1',
      workspace = 'ml',
      user = 'a1b2c3d4',
      name = 'launch',
    } = launch;
    const request = received({
      task: launch.task ?? `resources:\n  accelerators: ${gpus}\n`,
      skypilot_config: launch.config ?? `active_workspace: ${workspace}\n`,
      request_name: name,
      request_options:
        cluster === null
          ? null
          : {
              cluster_name: cluster,
              idle_minutes_to_autostop: null,
              down: false,
              dryrun: launch.dryrun ?? false,
            },
      at_client_side: launch.atClientSide ?? false,
      user: launch.atClientSide === true ? '' : `id: ${user}\nname: lee\n`,
    });
    return withinDeadline(DEADLINE, (deadline) => chain.review(request, { deadline }));
  }

  /** Has the cluster `train` asked for, launched and counted. */
  async function up(count = 1): Promise<void> {
    await ask({ gpus: `A100:${count}` });
    api.launch({ name: 'train', workspace: 'ml', accelerators: { A100: count } });
    await poll();
  }

  /** One round so many seconds later, and what it changed. */
  async function poll(
    later = 0,
    { by = ledger, holder = 'test', every = 0 } = {},
  ): Promise<{ round: ReconciliationResult; changes: ClusterChange[] }> {
    seconds += later;
    const changes: ClusterChange[] = [];
    const server = new SkypilotApiServer(
      { url: api.url, token: apiOptions.token ?? '', timeout: 5, pollPause: 0.01 },
      createSharedServices({ logger }),
    );
    try {
      const round = await followSkypilot({
        ledger: by,
        limits: chain.launches?.limits ?? [],
        server,
        holder,
        every,
        signal: undefined,
        report: (change) => changes.push(change),
      });
      return { round, changes };
    } finally {
      await server.close();
    }
  }

  const lab = {
    configuration,
    chain,
    ledger,
    api,
    connection,
    logger,
    ask,
    up,
    poll,
    /** In seconds of the epoch. */
    now: () => seconds,
    pass: (more: number) => {
      seconds += more;
    },
    /** What is charged to the budget, in GPU-hours. */
    taken: async (project = 'ml') => hours((await listBudgets(ledger, project, NO_WAIT))[0]?.taken ?? 0n),
    leases: () => listLeases(ledger, { limit: 100 }, NO_WAIT),
    /** The ledger agrees with itself. */
    verify: async () => expect((await verifyLedger(ledger, NO_WAIT)).differences).toEqual([]),
    /** Also twice. */
    close: async () => {
      closing ??= Promise.all([chain.close(), ledger.close()]);
      await closing;
    },
  };
  onTestFinished(() => lab.close());
  if (setup.isCounted ?? policies.includes('GpuQuotaPolicy')) {
    await poll();
  }
  if (budget !== undefined) {
    await giveBudget(ledger, { projectId: 'ml', amount: budget });
  }
  return lab;
}

export function hours(amount: Amount): number {
  return Number(amount) / Number(HOUR);
}
