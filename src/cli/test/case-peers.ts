/** Fills the ledger of a trial from a case. */
import { waitFor } from '../../base/deadline.ts';
import { smaller } from '../../filter/claim.ts';
import type { SharedServices } from '../../filter/services.ts';
import { HttpCallError } from '../../http/call-error.ts';
import type { HttpAnswer, HttpClient } from '../../http/contract.ts';
import { formatInstant, leaseEnd, leaseStart } from '../../lease/dates.ts';
import type { Context, Lease } from '../../lease/lease.ts';
import { type BudgetUsage, listBudgets, setBudget } from '../../ledger/budgets/budgets.ts';
import { parseBudget } from '../../ledger/budgets/terms.ts';
import { identityOf, nameOf } from '../../ledger/identity.ts';
import { requestFor } from '../../ledger/reconciliation/change-lease.ts';
import { type Keystone, KeystoneError } from '../../openstack/contract.ts';
import { type CaseBudget, type CaseServiceAnswer, timeOf } from './lease-case.ts';
import type { LeaseTrial } from './lease-trial.ts';

/** A lease that was granted before the case. */
export interface ExistingLease {
  readonly context: Context;
  readonly lease: Lease;
}

const WHO = 'a case';
const WAIT = waitFor(undefined);

/** @throws InvalidRequestError, BudgetConflictError */
export async function giveBudget(trial: LeaseTrial, budget: CaseBudget): Promise<void> {
  const now = trial.now();
  const { project, user, from, until, amount } = budget;
  const wanted = parseBudget(
    {
      projectId: project,
      userId: user ?? null,
      from: formatInstant(timeOf(from, now)),
      until: formatInstant(timeOf(until, now)),
      amount,
    },
    'unit-hours',
  );
  const author = { who: WHO, reason: null };
  await trial.ledger?.read((ledger) => setBudget(ledger, wanted, author, WAIT));
}

/** Records leases, even if they do not fit, each at its start: all of it is charged. */
export async function giveLeases(trial: LeaseTrial, leases: readonly ExistingLease[]): Promise<void> {
  const now = trial.now();
  const dated = leases.map((one) => ({
    ...one,
    start: leaseStart(one.lease) ?? now,
    end: leaseEnd(one.lease) ?? now,
  }));
  // A ledger's clock does not go back.
  dated.sort((a, b) => (a.start < b.start ? -1 : a.start > b.start ? 1 : 0));
  for (const { context, lease, start, end } of dated) {
    const known = { name: nameOf([lease, lease]), start, end, reservations: lease.reservations ?? [] };
    const request = requestFor(identityOf(context, [lease, lease]), known, { start, end }, trial.claimants);
    const author = { operation: 'reconcile', who: WHO, requestId: null, reason: null } as const;
    await trial.at(smaller(start, now), async () => {
      await trial.ledger?.read((ledger) => ledger.commit(request, author, WAIT, true));
    });
  }
}

/** Empty if no filter uses the ledger. */
export async function budgetsIn(trial: LeaseTrial): Promise<readonly BudgetUsage[]> {
  return (await trial.ledger?.read((ledger) => listBudgets(ledger, undefined, WAIT))) ?? [];
}

export interface CaseAccount {
  /** Default: the id. */
  readonly name?: string | undefined;
  /** The name of its domain. Default: `Default`. */
  readonly domain?: string | undefined;
  /** For projects. Default: none. */
  readonly tags?: readonly string[] | undefined;
}

interface GivenAccounts {
  /** By id. */
  readonly projects: ReadonlyMap<string, CaseAccount>;
  readonly users: ReadonlyMap<string, CaseAccount>;
  /** Keystone answers nothing. */
  readonly isUnavailable: boolean;
}

const DOMAIN = 'Default';
const TOKEN = 'token-of-a-case';

/** An id that it was not given is an account of that name in the domain `Default`. */
export function caseKeystone({ projects, users, isUnavailable }: GivenAccounts): Keystone {
  const refuse = (): void => {
    if (isUnavailable) {
      throw new KeystoneError('unavailable', 'the case says that Keystone is unavailable');
    }
  };
  const answer = (body: unknown) => ({ status: 200, body: JSON.stringify(body) });
  const described = (kind: 'project' | 'user', id: string, account: CaseAccount | undefined) => ({
    id,
    name: account?.name ?? id,
    domain_id: account?.domain ?? DOMAIN,
    ...(kind === 'project' && { tags: account?.tags ?? [] }),
  });
  const identities = { projects: ['project', projects], users: ['user', users] } as const;
  return {
    token: async () => {
      refuse();
      return TOKEN;
    },
    refused: () => {},
    endpoint: async () => Promise.reject(notGiven()),
    get: async () => Promise.reject(notGiven()),
    validate: async () => Promise.reject(notGiven()),
    async getIdentity(path) {
      refuse();
      const url = new URL(path, 'https://keystone.invalid');
      const [kinds = '', id] = url.pathname.split('/').slice(1).map(decodeURIComponent);
      const name = url.searchParams.get('name');
      if (kinds === 'domains') {
        const known = id ?? name;
        return answer(
          id === undefined ? { domains: [{ id: known, name: known }] } : { domain: { id, name: id } },
        );
      }
      if (kinds !== 'projects' && kinds !== 'users') {
        throw notGiven();
      }
      const [kind, accounts] = identities[kinds];
      if (id !== undefined) {
        return answer({ [kind]: described(kind, id, accounts.get(id)) });
      }
      const known = [...accounts].map(([one, account]) => described(kind, one, account));
      return answer({ [kinds]: known.filter((one) => one.name === name) });
    },
    close: async () => {},
  };
}

function notGiven(): KeystoneError {
  return new KeystoneError('unavailable', 'a case calls no Keystone');
}

interface GivenServices {
  readonly http: SharedServices['http'];
  /** The called addresses without an answer, without credentials and parameters. */
  readonly unanswered: ReadonlySet<string>;
}

/** By address, or by its path. */
export function caseServices(answers: ReadonlyMap<string, CaseServiceAnswer>): GivenServices {
  const unanswered = new Set<string>();
  const call = async (address: string): Promise<HttpAnswer> => {
    const { origin, pathname } = new URL(address);
    const shown = `${origin}${pathname}`;
    const given = answers.get(address) ?? answers.get(shown) ?? answers.get(pathname);
    if (given === undefined) {
      unanswered.add(shown);
      throw new HttpCallError('connect', `${shown}: the case gives no answer of this service`);
    }
    if (given.error !== undefined) {
      throw new HttpCallError(given.error, `${shown}: ${given.error}, as the case says`);
    }
    const { body = '' } = given;
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    return { status: given.status ?? (text === '' ? 204 : 200), body: text, headers: {} };
  };
  const client: HttpClient = { postJson: call, get: call, close: async () => {} };
  return { http: { createClient: () => client }, unanswered };
}
