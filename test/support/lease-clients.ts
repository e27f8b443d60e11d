/** Clients that create, change and end leases of one project at random, and remember the responses. */
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'vitest';
import { FAILED_MESSAGE, UNAVAILABLE_MESSAGE } from '../../src/enforcement/chain/messages.ts';
import type { Reservation } from '../../src/index.ts';
import { DEADLINE, MARGIN, type ServiceAnswer, type ServiceProcess, slowest } from './ledger-processes.ts';
import { createPhysicalHost, endActive, updateExtend } from './requests.ts';

const DAY = 86_400;
/** A month ahead: a lease that ends before it begins is refunded completely. */
const START = (Math.floor(Date.now() / 1000 / DAY) + 30) * DAY;

/** A lease from the client's view. */
export interface ClientLease {
  readonly name: string;
  /** Blazar's id; the ledger gets it with the first update, or the end. */
  readonly id: string;
  /** Unique: without ids, the ledger cannot distinguish leases of one shape that begin in the same second. */
  readonly start: number;
  readonly end: number;
  readonly hosts: number;
  readonly isOpen: boolean;
}

/** A request, and the lease before and after it. */
interface LeaseOperation {
  readonly path: 'check-create' | 'check-update' | 'on-end';
  readonly body: object;
  /** The same for a retry. */
  readonly key?: string;
  readonly before: ClientLease | undefined;
  readonly after: ClientLease;
}

let leases = 0;

export function newLease(days: number, hosts = 1): LeaseOperation {
  const name = `lease-${randomUUID()}`;
  leases += 1;
  const after = {
    name,
    id: randomUUID(),
    start: START + leases,
    end: START + days * DAY,
    hosts,
    isOpen: true,
  };
  const { context, lease } = createPhysicalHost();
  return {
    path: 'check-create',
    key: randomUUID(),
    body: {
      context,
      lease: {
        ...lease,
        name,
        ...datesOf(after),
        reservations: reservationsOf(after, lease.reservations),
      },
    },
    before: undefined,
    after,
  };
}

export function changeOf(before: ClientLease, days: number): LeaseOperation {
  const after = { ...before, end: START + days * DAY };
  const { context, currentLease } = updateExtend();
  const { id, name } = before;
  const reservations = reservationsOf(before, currentLease.reservations);
  return {
    path: 'check-update',
    body: {
      context,
      current_lease: { ...currentLease, id, name, status: 'PENDING', ...datesOf(before), reservations },
      lease: { ...datesOf(after), reservations },
    },
    before,
    after,
  };
}

export function endOf(before: ClientLease): LeaseOperation {
  const { context, lease } = endActive();
  const { id, name } = before;
  const reservations = reservationsOf(before, lease.reservations);
  return {
    path: 'on-end',
    body: { context, lease: { ...lease, id, name, status: 'PENDING', ...datesOf(before), reservations } },
    before,
    after: { ...before, isOpen: false },
  };
}

function datesOf({ start, end }: ClientLease) {
  const written = (second: number) => new Date(second * 1000).toISOString().slice(0, 19);
  return { start_date: written(start), end_date: written(end) };
}

/** The captured reservation with this number of hosts. */
function reservationsOf({ hosts }: ClientLease, [reservation]: readonly Reservation[] = []) {
  return [{ ...reservation, max: hosts, allocations: reservation?.allocations?.slice(0, hosts) }];
}

/** What a repeated change is told until the first one is some seconds old: its answer was lost, so it waits. */
const AGAIN = /^Another change of this lease was allowed a moment ago/;

const MOST_LEASES = 3;
const MOST_DAYS = 9;

interface ClientOptions {
  /** Whether it ends leases: an end is always answered with 204, since it cannot be refused. Default true. */
  readonly mayEnd?: boolean;
  /** Whether it retries when the ledger was unavailable, since the outcome is unknown then. Default false. */
  readonly asksAgain?: boolean;
}

export class LeaseClient {
  readonly #options: ClientOptions;
  /** By name: the last acknowledged state. */
  readonly acknowledged = new Map<string, ClientLease>();
  /** New leases that were refused. */
  readonly refused: string[] = [];
  /** The request without a response yet: it may have been executed, or not. */
  pending: LeaseOperation | undefined;
  readonly answers: ServiceAnswer[] = [];
  /** The number of requests without a response. */
  unanswered = 0;

  constructor(options: ClientOptions = {}) {
    this.#options = options;
  }

  /** Sends one request after the other to random services. Retries until there is a response. */
  async work(services: readonly ServiceProcess[], isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      const alive = services.filter(({ process }) => process.signalCode === null);
      const service = alive[Math.floor(Math.random() * alive.length)];
      this.pending ??= this.#choose();
      const answer = await service?.ask(this.pending.path, this.pending.body, this.pending.key);
      if (answer === undefined) {
        this.unanswered += 1;
        await pause(5);
      } else if (AGAIN.test(answer.message ?? '')) {
        await pause(200);
      } else {
        this.answers.push(answer);
        const isInDoubt = answer.message === UNAVAILABLE_MESSAGE || answer.message === FAILED_MESSAGE;
        if (!isInDoubt || this.#options.asksAgain !== true) {
          this.#learn(this.pending, answer);
          this.pending = undefined;
        }
      }
    }
  }

  #choose(): LeaseOperation {
    const open = [...this.acknowledged.values()].filter(({ isOpen }) => isOpen);
    const some = open[Math.floor(Math.random() * open.length)];
    const days = 1 + Math.floor(Math.random() * MOST_DAYS);
    const dice = Math.random();
    if (some === undefined || (open.length < MOST_LEASES && dice < 0.5)) {
      return newLease(days, 1 + Math.floor(Math.random() * 2));
    }
    return dice < 0.75 || this.#options.mayEnd === false ? changeOf(some, days) : endOf(some);
  }

  #learn({ path, after }: LeaseOperation, answer: ServiceAnswer): void {
    if (answer.status === 204) {
      this.acknowledged.set(after.name, after);
    } else if (path === 'check-create') {
      this.refused.push(after.name);
    }
  }
}

/** Runs clients until they are stopped. */
export function startClients(clients: readonly LeaseClient[], services: readonly ServiceProcess[]) {
  let isOver = false;
  const all = Promise.all(clients.map((client) => client.work(services, () => isOver)));
  return {
    async stop(): Promise<void> {
      isOver = true;
      await all;
    },
  };
}

export function newClients(count: number, options: ClientOptions = {}): LeaseClient[] {
  return Array.from({ length: count }, () => new LeaseClient(options));
}

/** Requests a new lease of one host. The response must be in time. */
export async function createLease(service: ServiceProcess) {
  const { path, body, after } = newLease(1);
  const answer = await service.ask(path, body);
  expect(answer === undefined ? Number.POSITIVE_INFINITY : slowest([answer])).toBeLessThan(DEADLINE + MARGIN);
  return { ...answer, name: after.name };
}
