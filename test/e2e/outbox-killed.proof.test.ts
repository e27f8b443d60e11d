/** Ends that are answered are delivered, whatever is killed and whoever is away. */
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { countOutbox } from '../../src/ledger/outbox/reports.ts';
import { SCALE, type ServiceProcess, startServices } from '../support/ledger-processes.ts';
import { DIALECTS, ledgerAt, NO_WAIT, newLedgers } from '../support/ledgers.ts';
import { type PolicyServer, policyServer } from '../support/policy-server.ts';
import { createPhysicalHost } from '../support/requests.ts';
import { hasten, killedAtWork } from './killed.ts';

const ROUNDS = 3 * SCALE;
const SERVICES = 3;
const CLIENTS = 8;
const LONGEST_LIFE = 30;
/** How long the rest may take. */
const SETTLED = { timeout: 600_000, interval: 200 };

const newLedger = newLedgers();

/** What the clients were told, and what the external service has heard and accepted. */
interface Books {
  /** Lease → what was sent about its end and answered with 204, in order. */
  readonly ended: Map<string, string[]>;
  readonly granted: Set<string>;
  readonly refused: Set<string>;
  readonly heardEnds: Map<string, string[]>;
  readonly committed: Set<string>;
  /** Keys of messages: a key must always come with the same body. */
  readonly bodies: Map<string, string>;
  strange: string[];
}

/** An external service that accepts, fails, disappears in the middle of a call, and wants to be left alone. */
async function flappingService(books: Books): Promise<PolicyServer & { calm: boolean }> {
  const server = Object.assign(await policyServer({ status: 204 }), { calm: false });
  server.answer = (request, response) => {
    const received = server.requests.at(-1);
    const fate = server.calm ? 0 : Math.random();
    // It has done what it was asked for, whether or not it can say so.
    if (fate < 0.7 && received !== undefined) {
      note(books, received.url ?? '', String(received.headers['idempotency-key']), received.body);
    }
    if (fate < 0.5) {
      response.writeHead(204).end();
    } else if (fate < 0.6) {
      response.writeHead(500).end();
    } else if (fate < 0.8) {
      request.socket.destroy();
    } else {
      response.writeHead(503).end();
    }
  };
  return server;
}

function note(books: Books, url: string, key: string, body: string): void {
  const { lease } = JSON.parse(body) as { lease: { id?: string; name: string } };
  if (url.startsWith('/commit')) {
    books.committed.add(lease.name);
    return;
  }
  const before = books.bodies.get(key);
  if (before !== undefined && before !== body) {
    books.strange.push(`${key} came with two bodies`);
  }
  books.bodies.set(key, body);
  const about = lease.id ?? lease.name;
  books.heardEnds.set(about, [...(books.heardEnds.get(about) ?? []), lease.name]);
}

let leases = 0;

/** Ends leases, some several times, and asks for new ones, until it is told to stop. */
async function client(services: readonly ServiceProcess[], books: Books, over: () => boolean): Promise<void> {
  while (!over()) {
    const { context, lease } = createPhysicalHost();
    const service = services[Math.floor(Math.random() * services.length)];
    leases += 1;
    const id = `lease-${leases}`;
    if (leases % 3 === 0) {
      const answer = await service?.ask('check-create', { context, lease: { ...lease, name: id } });
      if (answer !== undefined) {
        (answer.status === 204 ? books.granted : books.refused).add(id);
      }
      continue;
    }
    for (const turn of [1, 2, 3].slice(0, 1 + (leases % 4))) {
      const name = `${id} turn ${turn}`;
      const answer = await service?.ask('on-end', { context, lease: { ...lease, id, name } });
      if (answer?.status === 204) {
        books.ended.set(id, [...(books.ended.get(id) ?? []), name]);
      }
    }
    await pause(1);
  }
}

describe.each(DIALECTS)(
  'an outbox in %s, with processes that are killed and a service that flaps',
  (dialect) => {
    it('delivers every end that was answered, in order, and undoes every commit that was refused', {
      timeout: 1_200_000 * SCALE,
    }, async () => {
      const connection = await newLedger(dialect);
      const books: Books = {
        ended: new Map(),
        granted: new Set(),
        refused: new Set(),
        heardEnds: new Map(),
        committed: new Set(),
        bodies: new Map(),
        strange: [],
      };
      const server = await flappingService(books);
      const setup = {
        connection,
        isEmbedded: true,
        enabled: 'ExternalServiceFilter',
        enforcement: [
          `external_service_on_end_endpoint = ${server.url}/on-end`,
          `external_service_commit_create_endpoint = ${server.url}/commit-create`,
          'external_service_delivery = durable',
          'external_service_breaker_failures = 0',
          'external_service_timeout = 5',
        ].join('\n'),
      };
      for (let round = 0; round < ROUNDS; round += 1) {
        const services = await startServices(SERVICES, { ...setup, isEmbedded: round % 3 > 0 });
        const clients = Array.from(
          { length: CLIENTS },
          () => (over: () => boolean) => client(services, books, over),
        );
        await killedAtWork(services, () => 5 + Math.random() * LONGEST_LIFE, clients);
      }
      server.calm = true;
      const ledger = await ledgerAt(connection);
      await hasten(ledger);
      await startServices(1, setup);
      await vi.waitFor(
        async () => expect(await countOutbox(ledger, NO_WAIT)).toMatchObject({ waiting: 0, dead: 0 }),
        SETTLED,
      );
      await ledger.close();

      expect(books.ended.size).toBeGreaterThan(20);
      for (const [id, sent] of books.ended) {
        const heard = books.heardEnds.get(id) ?? [];
        // The first time that each was heard: what is repeated may come again at any time before the next.
        const first = [...new Set(heard)].filter((name) => sent.includes(name));
        expect(first, id).toEqual(sent);
      }
      const wronged = [...books.granted].filter((name) => books.heardEnds.has(name));
      expect(wronged).toEqual([]);
      const stillCounted = [...books.refused].filter(
        (name) => books.committed.has(name) && !books.heardEnds.has(name),
      );
      expect(stillCounted).toEqual([]);
      expect([...books.granted].every((name) => books.committed.has(name))).toBe(true);
      expect([...books.refused].some((name) => books.committed.has(name))).toBe(true);
      expect(books.strange).toEqual([]);
    });
  },
);
