/** A request about a lease as the variables of its rules. */

import { type ProjectState, type Proposal, unitHours } from '../../filter/claim.ts';
import type { RequestNames } from '../../filter/verdict.ts';
import { MICROSECONDS_PER_SECOND } from '../../lease/dates.ts';
import { type Context, type Lease, leaseAfterUpdate, reservationsAfterUpdate } from '../../lease/lease.ts';
import { shownBy } from '../../lease/read-only.ts';
import { Timestamp } from '../cel/values.ts';
import { LeaseView, type ReservationView } from './lease-view.ts';

export interface LeaseRequestParts {
  readonly operation: 'create' | 'update';
  readonly context: Context;
  readonly lease: Lease;
  readonly currentLease?: Lease | undefined;
  readonly names?: RequestNames | undefined;
  readonly now: Date;
  /** The state of the project in the ledger. Functions of the ledger fail without it. */
  readonly ledger?: LedgerView | undefined;
}

export class RequestInfo {
  readonly operation: string;

  constructor(operation: string) {
    this.operation = operation;
  }
}

export class ProjectView {
  readonly id: string;
  readonly name: string | undefined;
  readonly domain: string | undefined;
  readonly tags: readonly string[] | undefined;

  constructor({ project_id }: Context, names: RequestNames | undefined) {
    this.id = project_id;
    this.name = names?.project?.name;
    this.domain = names?.project?.domain;
    this.tags = names?.project?.tags;
  }
}

export class UserView {
  readonly id: string;
  readonly name: string | undefined;
  readonly domain: string | undefined;

  constructor({ user_id }: Context, names: RequestNames | undefined) {
    this.id = user_id;
    this.name = names?.user?.name;
    this.domain = names?.user?.domain;
  }
}

export class ContextView {
  readonly project: ProjectView;
  readonly user: UserView;
  readonly project_id: string;
  readonly user_id: string;
  readonly region: string | undefined;

  constructor(context: Context, names: RequestNames | undefined) {
    this.project = new ProjectView(context, names);
    this.user = new UserView(context, names);
    this.project_id = context.project_id;
    this.user_id = context.user_id;
    this.region = context.region_name ?? undefined;
  }
}

/** The variables of rules for leases. An update has `current`, the existing lease; `lease` is the result. */
export class LeaseActivation {
  readonly request: RequestInfo;
  readonly context: ContextView;
  readonly lease: LeaseView;
  readonly current: LeaseView | undefined;
  /** Not a variable: the functions of the ledger read it. */
  readonly ledger: LedgerView | undefined;
  readonly #now: Date;
  #allocations: readonly unknown[] | undefined;

  constructor({ operation, context, lease, currentLease, names, now, ledger }: LeaseRequestParts) {
    this.#now = now;
    this.request = new RequestInfo(operation);
    this.context = new ContextView(shownBy(context), names);
    this.ledger = ledger;
    const wanted = shownBy(lease);
    const current = currentLease === undefined ? undefined : shownBy(currentLease);
    this.current = current === undefined ? undefined : new LeaseView(current, current.reservations ?? []);
    this.lease =
      current === undefined
        ? new LeaseView(wanted, wanted.reservations ?? [])
        : new LeaseView(leaseAfterUpdate(current, wanted), reservationsAfterUpdate(current, wanted));
  }

  get now(): Timestamp {
    return new Timestamp(BigInt(this.#now.getTime()) * 1_000_000n);
  }

  get reservations(): readonly ReservationView[] {
    return this.lease.reservations;
  }

  get allocations(): readonly unknown[] {
    if (this.#allocations === undefined) {
      const [first, ...others] = this.reservations.map(({ allocations }) => allocations.items);
      this.#allocations = others.length === 0 ? (first ?? []) : [first ?? [], ...others].flat();
    }
    return this.#allocations;
  }
}

/** The state of the project in the ledger, without the lease in question. */
export interface LedgerView {
  /** Number of its pending and active leases. */
  readonly leases: bigint;
  /** Taken from its budgets that are valid at the start of the lease, in unit-hours. */
  readonly taken: number;
  /** `undefined` = no budget then. */
  readonly left: number | undefined;
}

/** The request of a ledger transaction. `undefined` = the lease exists already: nothing is requested. */
export function requestIn(
  { context, names, request, start }: Proposal,
  { now, budgets, others }: ProjectState,
): LeaseRequestParts | undefined {
  if (request === undefined) {
    return undefined;
  }
  if (others === undefined) {
    throw new Error('the ledger does not say what other leases take');
  }
  const second = start / MICROSECONDS_PER_SECOND;
  const valid = budgets.filter(
    ({ userId, validFrom, validUntil }) => userId === null && validFrom <= second && second < validUntil,
  );
  const taken = valid.reduce((sum, budget) => sum + others.takenOf(budget), 0n);
  const amount = valid.reduce((sum, budget) => sum + budget.amount, 0n);
  const { lease, currentLease } = request;
  return {
    operation: currentLease === undefined ? 'create' : 'update',
    context,
    lease,
    currentLease,
    names,
    now: new Date(Number(now / 1000n)),
    ledger: {
      leases: others.count,
      taken: unitHours(taken),
      left: valid.length === 0 ? undefined : unitHours(amount - taken),
    },
  };
}
