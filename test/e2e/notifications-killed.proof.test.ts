/** Each threshold that leases pass is announced once, to a webhook and by mail, whatever is killed and however the receivers fail. */
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'kysely';
import { describe, expect, it, vi } from 'vitest';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { countOutbox } from '../../src/ledger/outbox/reports.ts';
import { rows } from '../../src/ledger/storage/database.ts';
import { eventIn } from '../enforcement/notifications/cloud-events.ts';
import { mailServer } from '../enforcement/notifications/mail-server.ts';
import { hours } from '../filters/on-ledger.ts';
import { SCALE, type ServiceProcess, startServices } from '../support/ledger-processes.ts';
import { DIALECTS, giveBudget, ledgerAt, NO_WAIT, newLedgers } from '../support/ledgers.ts';
import { policyServer } from '../support/policy-server.ts';
import { createPhysicalHost } from '../support/requests.ts';
import { hasten, killedAtWork } from './killed.ts';

const ROUNDS = 2 * SCALE;
const PROJECTS = ['climate', 'ocean', 'physics'];
const CLIENTS = 6;
/** A lease takes 96 of them. */
const BUDGET = '1000';
const THRESHOLDS = [40, 80, 95];
const SETTLED = { timeout: 600_000, interval: 200 };

const newLedger = newLedgers();

/** Takes and gives back leases of one project, without an end. */
async function client(services: readonly ServiceProcess[], over: () => boolean): Promise<void> {
  const held: { project_id: string; id: string }[] = [];
  while (!over()) {
    const { context, lease } = createPhysicalHost();
    const service = services[Math.floor(Math.random() * services.length)];
    const ending = Math.random() < 0.45 ? held.shift() : undefined;
    if (ending !== undefined) {
      const { project_id, id } = ending;
      await service?.ask('on-end', { context: { ...context, project_id }, lease: { ...lease, id } });
    } else {
      const project_id = PROJECTS[Math.floor(Math.random() * PROJECTS.length)] ?? '';
      const id = randomUUID();
      const body = { context: { ...context, project_id }, lease: { ...lease, id, name: id } };
      if ((await service?.ask('check-create', body))?.status === 204) {
        held.push({ project_id, id });
      }
    }
    await pause(1);
  }
}

/** From the entries: project, threshold → how often it was passed upwards. */
async function crossingsOf(ledger: Ledger): Promise<Record<string, number>> {
  const query = sql<{ project_id: string; delta: bigint }>`
    select project_id, delta from entries where account like 'usage_budget/%' order by id`;
  const entries = await ledger.database.read(() => rows(query.compile(ledger.database.queries)), NO_WAIT);
  const balances = new Map<string, bigint>();
  const crossings: Record<string, number> = {};
  for (const { project_id, delta } of entries) {
    const before = balances.get(project_id) ?? 0n;
    const after = before + delta;
    balances.set(project_id, after);
    for (const threshold of THRESHOLDS) {
      const least = (hours(BUDGET) * BigInt(threshold)) / 100n;
      if (before < least && after >= least) {
        const name = `${project_id} ${threshold}`;
        crossings[name] = (crossings[name] ?? 0) + 1;
      }
    }
  }
  return crossings;
}

describe.each(DIALECTS)('notifications from %s', (dialect) => {
  it('announce each crossing once, with processes that are killed and a receiver that fails', {
    timeout: 1_200_000 * SCALE,
  }, async () => {
    const connection = await newLedger(dialect);
    const ledger = await ledgerAt(connection);
    for (const projectId of PROJECTS) {
      await giveBudget(ledger, { projectId, amount: BUDGET });
    }
    const heard = new Map<string, string>();
    const strange: string[] = [];
    let isCalm = false;
    const receiver = await policyServer({ status: 204 });
    receiver.answer = (request, response) => {
      const received = receiver.requests.at(-1);
      const fate = isCalm ? 0 : Math.random();
      if (fate < 0.7 && received !== undefined) {
        const id = String(received.headers['webhook-id']);
        const before = heard.get(id);
        if (before !== undefined && before !== received.body) {
          strange.push(`${id} came with two bodies`);
        }
        heard.set(id, received.body);
      }
      if (fate < 0.5) {
        response.writeHead(202).end('ok');
      } else if (fate < 0.6) {
        response.writeHead(500).end();
      } else if (fate < 0.8) {
        request.socket.destroy();
      } else if (fate < 0.9) {
        response.writeHead(302, { Location: receiver.url }).end();
      } else {
        response.writeHead(200).end('<!doctype html>');
      }
    };
    const mail = await mailServer({
      onMailFrom: (_, __, done) => {
        const responseCode = [421, 451, 550][Math.floor(Math.random() * 3)];
        done(isCalm || Math.random() < 0.5 ? null : Object.assign(new Error('not now'), { responseCode }));
      },
    });
    const setup = {
      connection,
      enabled: 'UsageBudgetFilter',
      sections: [
        '[notifications]',
        `webhook_url = ${receiver.url}`,
        `smtp_url = smtp://127.0.0.1:${mail.port}`,
        'mail_from = blazar@example.org',
        'mail_to = operators@example.org',
        `budget_thresholds = ${THRESHOLDS.join(', ')}`,
        'events = budget.threshold',
      ].join('\n'),
    };
    for (let round = 0; round < ROUNDS; round += 1) {
      const services = await startServices(3, { ...setup, isEmbedded: round % 2 === 1 });
      const clients = Array.from({ length: CLIENTS }, () => (over: () => boolean) => client(services, over));
      await killedAtWork(services, () => 30 + Math.random() * 60, clients);
    }
    isCalm = true;
    await hasten(ledger);
    await startServices(1, setup);
    await vi.waitFor(
      async () => expect(await countOutbox(ledger, NO_WAIT)).toMatchObject({ waiting: 0, dead: 0 }),
      SETTLED,
    );
    const told: Record<string, number> = {};
    for (const [id, body] of heard) {
      const { data, id: own } = eventIn(body);
      expect(own).toBe(id);
      const name = `${(data.project as { id: string }).id} ${data.threshold}`;
      told[name] = (told[name] ?? 0) + 1;
    }
    expect(told).toEqual(await crossingsOf(ledger));
    const mailed = new Set(mail.mails.map(({ headers }) => headers.get('message-id')));
    expect(mailed).toEqual(new Set([...heard.keys()].map((id) => `<${id}@example.org>`)));
    expect(Object.keys(told).length).toBeGreaterThan(3);
    expect(strange).toEqual([]);
    await ledger.close();
  });
});
