/**
 * Two services on one PostgreSQL follow a real Blazar, while the clocks of the services, or that of Blazar, are set hours and seconds wrong
 * again and again. What the services' clocks say does not matter at all; whatever Blazar's says, no lease that is there is released.
 */
import { createServer, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { listBudgets } from '../../src/ledger/budgets/budgets.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { verifyLedger } from '../../src/ledger/reports/verify.ts';
import { rows } from '../../src/ledger/storage/database.ts';
import type { LeaseRow } from '../../src/ledger/storage/schema.ts';
import { type ServiceProcess, startService } from '../support/ledger-processes.ts';
import { giveBudget, NO_WAIT, newLedgers, openedLedger } from '../support/ledgers.ts';
import { peerProgram } from '../support/peers.ts';
import { listening } from '../support/services.ts';
import { clockLibrary, SetClock } from '../support/set-clock.ts';
import { ValidatingKeystone } from '../support/validating-keystone.ts';
import { RealBlazar } from './blazar.ts';
import { TrueCost } from './true-cost.ts';
import { type Action, randomActions, type Scene } from './user-actions.ts';

const STEPS = Number(process.env.BLAZAR_STEPS ?? 24);
const SEED = Number(process.env.BLAZAR_SEED ?? 1);
/** How often clocks are set: after so many steps. */
const SET_EVERY = 6;
const PROJECT = 'climate';
const BUDGET = 1200;
const HOUR = 3600;
/** `[blazar] reconcile_grace`, in seconds: Blazar builds a lease sooner, on a busy machine too. */
const GRACE = 60;
/** The same once nobody asks Blazar for anything any more. */
const GRACE_AT_REST = 2;
const SETTLED = { timeout: 600_000, interval: 200 };
/** By how much clocks are wrong, in seconds. */
const WRONG = [7200, -7200, 40, -40, 0, -86_400, 3600] as const;

const program = peerProgram('BLAZAR_PEER');
const library = clockLibrary();
const newLedger = newLedgers();

interface Site {
  readonly blazar: RealBlazar;
  readonly ledger: Ledger;
  readonly services: readonly ServiceProcess[];
  /** Of the services, and of Blazar. */
  readonly clocks: readonly [SetClock, SetClock, SetClock];
}

/** Blazar asks the two services in turns, and one of them compares the ledger with it each second. */
async function newSite(): Promise<Site> {
  const clocks = [0, 0, 0].map((ahead) => new SetClock(library ?? '', ahead)) as [
    SetClock,
    SetClock,
    SetClock,
  ];
  const keystone = await ValidatingKeystone.start();
  keystone.tokens.set('gAAAAABour-own', 'service');
  const connection = await newLedger('postgresql');
  const ledger = await openedLedger(connection, { now: () => new Date().toISOString() });
  await giveBudget(ledger, {
    projectId: PROJECT,
    amount: String(BUDGET),
    from: '2026-01-01',
    until: '2040-01-01',
  });
  // Blazar takes who asks from the token.
  const forServices = await forwarding((headers) => ({ ...headers, 'x-auth-token': 'admin' }));
  const setup = {
    connection,
    enabled: 'UsageBudgetFilter, MaxLeasesFilter',
    enforcement: `usage_budget_rates = physical:host:1, virtual:instance:0.3, virtual:floatingip:0.1
max_leases_per_project = 16
[keystone]
auth_url = ${keystone.url}
username = blazar
password = blazar
project_name = service
[blazar]
endpoint = ${forServices.url}/v1
reconcile_interval = 1
reconcile_grace = ${GRACE}`,
  };
  const services = await Promise.all(
    clocks.slice(0, 2).map(({ environment }) => startService({ ...setup, environment })),
  );
  const inTurns = await forwarding((headers) => headers);
  let asked = 0;
  inTurns.target = () => {
    asked += 1;
    return services[asked % services.length]?.url;
  };
  const options = ['--hosts', '12'];
  const blazar = await RealBlazar.start(program ?? '', `${inTurns.url}/v1/`, options, clocks[2].environment);
  onTestFinished(() => blazar.stop());
  forServices.target = () => blazar.url;
  return { blazar, ledger, services, clocks };
}

interface Forwarding {
  readonly url: string;
  target: () => string | undefined;
}

/** Passes requests on to a server that is not known yet, with the date of its answer. */
async function forwarding(
  headersOf: (headers: IncomingMessage['headers']) => IncomingMessage['headers'],
): Promise<Forwarding> {
  const passed: { target: Forwarding['target'] } = { target: () => undefined };
  const server = createServer(async (incoming, response) => {
    const body = await text(incoming);
    const { method, url = '', headers } = incoming;
    const target = passed.target();
    if (target === undefined) {
      response.writeHead(503).end();
      return;
    }
    request(`${target}${url}`, { method, headers: headersOf(headers) })
      .on('response', async (answer) => {
        response.sendDate = false;
        response.writeHead(answer.statusCode ?? 502, answer.headers).end(await text(answer));
      })
      .on('error', () => response.destroy())
      .end(body);
  });
  const { url } = await listening(server, [], 'http', 0);
  return Object.assign(passed, { url: new URL(url).origin });
}

function openRows(ledger: Ledger): Promise<LeaseRow[]> {
  const query = ledger.database.queries.selectFrom('leases').selectAll().where('state', '=', 'open');
  return ledger.read('read', () => rows(query.compile()), NO_WAIT);
}

/** Of the project's budget, in tenths of a unit, times seconds. */
async function taken(ledger: Ledger): Promise<number> {
  const [budget] = await listBudgets(ledger, PROJECT, NO_WAIT);
  return Number(budget?.taken ?? 0n) / 100_000;
}

const there = async (blazar: RealBlazar) =>
  (await blazar.truth()).filter(({ status }) => status !== 'TERMINATED');

const idsOf = (leases: readonly { readonly lease_id: string | null }[]) =>
  [...new Set(leases.map(({ lease_id }) => lease_id))].sort();

/** Nobody asks Blazar for anything any more. Resolves when the ledger has the leases that Blazar has, and no other. */
async function settled({ blazar, ledger, services }: Site): Promise<void> {
  for (const service of services) {
    service.reload((text) => text.replace(`_grace = ${GRACE}\n`, `_grace = ${GRACE_AT_REST}\n`));
  }
  await expect
    .poll(async () => [idsOf(await openRows(ledger)), idsOf(await there(blazar))], SETTLED)
    .toSatisfy(([open, real]: string[][]) => JSON.stringify(open) === JSON.stringify(real));
}

/** Deletes all, and the ledger must agree. */
async function emptied(site: Site, scene: Scene): Promise<void> {
  await site.blazar.failNova(false);
  for (const [id, { who }] of scene.leases) {
    await site.blazar.ask('DELETE', `/v1/leases/${id}`, who);
  }
  await settled(site);
  expect((await verifyLedger(site.ledger, NO_WAIT)).differences).toEqual([]);
}

async function* actions(
  site: Site,
): AsyncGenerator<{ step: number; scene: Scene; since: number; said: () => string }> {
  const scene: Scene = { leases: new Map(), owners: new Map() };
  const done: Action[] = [];
  let step = 0;
  for (const action of randomActions(SEED, STEPS, scene)) {
    const since = performance.now();
    const outcome = await action.do(site.blazar);
    done.push({ ...action, outcome });
    const said = () =>
      JSON.stringify(
        done.slice(-8).map(({ kind, who, body, outcome: one }) => ({ kind, who, body, outcome: one })),
      );
    yield { step, scene, since, said };
    step += 1;
  }
}

describe.skipIf(program === undefined || library === undefined)(
  'two services on PostgreSQL beside a real Blazar',
  () => {
    it('charge what is there, however far their clocks are from each other and from the truth', async () => {
      const site = await newSite();
      const { blazar, ledger, clocks, services } = site;
      const cost = new TrueCost({ late: 30 });
      let last: Scene = { leases: new Map(), owners: new Map() };
      for await (const { step, scene, since, said } of actions(site)) {
        last = scene;
        if (step % SET_EVERY === 0) {
          const turn = step / SET_EVERY;
          clocks[0].set(WRONG[turn % WRONG.length] ?? 0);
          clocks[1].set(WRONG[(turn + 1) % WRONG.length] ?? 0);
        }
        cost.heard();
        cost.observe(await there(blazar), since);
        const real = cost.total() - cost.slack;
        expect(real, `more is there than is charged: ${said()}`).toBeLessThanOrEqual(await taken(ledger));
        expect(real, said()).toBeLessThanOrEqual(BUDGET * HOUR * 10);
      }
      await settled(site);
      await expect
        .poll(async () => Math.abs(cost.total() - (await taken(ledger))), SETTLED)
        .toBeLessThanOrEqual(cost.slack);
      await emptied(site, last);
      for (const service of services) {
        expect(service.log()).not.toMatch(/clock of Blazar/);
      }
    });

    it('release no lease that is there, wherever the clock of Blazar is set', async () => {
      const site = await newSite();
      const { blazar, clocks, services } = site;
      let last: Scene = { leases: new Map(), owners: new Map() };
      let looked = 0;
      for await (const { step, scene, said } of actions(site)) {
        last = scene;
        const released = releasedBy(services);
        const real = new Set((await there(blazar)).map(({ lease_id }) => lease_id));
        const wrong = released.slice(looked).filter((id) => real.has(id) && !isReused(id));
        looked = released.length;
        expect(wrong, said()).toEqual([]);
        if (step % SET_EVERY === SET_EVERY - 1) {
          // Each is recorded at least once.
          await expect
            .poll(
              async () => missing(idsOf(await there(blazar)), idsOf(await openRows(site.ledger))),
              SETTLED,
            )
            .toEqual([]);
          clocks[2].set(WRONG[Math.floor(step / SET_EVERY) % WRONG.length] ?? 0);
        }
      }
      await expect
        .poll(() => services.map((service) => service.log()).join(''), SETTLED)
        .toMatch(/clock of Blazar/);
      clocks[2].set(0);
      await settled(site);
      await emptied(site, last);
    });
  },
);

/** The ids of leases that comparisons have released, in their order. */
function releasedBy(services: readonly ServiceProcess[]): string[] {
  const lines = services.flatMap((service) => service.log().split('\n'));
  return lines.flatMap((line) => /"outcome":"released","lease_id":"([^"]+)"/.exec(line)?.[1] ?? []);
}

/** Users choose such ids, and give them to other leases later. */
function isReused(id: string): boolean {
  return id.startsWith('own-');
}

function missing(wanted: readonly (string | null)[], found: readonly (string | null)[]): (string | null)[] {
  return wanted.filter((id) => !found.includes(id));
}
