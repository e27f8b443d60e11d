/** Leases in a ledger, recorded without a chain of filters. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Claim } from '../../src/filter/claim.ts';
import { toInstant } from '../../src/lease/dates.ts';
import type { LeaseIdentity } from '../../src/ledger/identity.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import type { Claimant, LedgerRequest } from '../../src/ledger/ledger-request.ts';
import type { ListTerms } from '../../src/ledger/reconciliation/plan.ts';
import { upgradeTables } from '../../src/ledger/storage/migrations/index.ts';
import type { LeaseShape } from '../../src/ledger/transactions/find-lease.ts';
import type { Author } from '../../src/ledger/transactions/journal.ts';
import type { Recording } from '../../src/ledger/transactions/lease-transactions.ts';
import { temporaryFile } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { NO_WAIT } from '../support/ledgers.ts';

export interface LeaseText {
  readonly leaseId?: string | null;
  readonly region?: string;
  readonly projectId?: string;
  readonly userId?: string;
  readonly name: string;
  readonly start?: string;
  readonly end?: string;
  /** Default: `CLAIMANT`. */
  readonly claimant?: Claimant;
}

/** One lease of so many, and one unit of the first budget. */
export const CLAIMANT: Claimant = {
  name: 'TestFilter',
  audit: false,
  claims({ context, start, end }) {
    const free = { limit: undefined, refuse: () => '' } as const;
    const claims: Claim[] = [
      { kind: 'held', account: 'max_leases/project', amount: 1n, ...free },
      { kind: 'held', account: `max_leases/user/${context.user_id}`, amount: 1n, ...free },
      {
        kind: 'usage',
        account: 'usage_budget/1',
        perSecond: 1_000_000n,
        from: start / 1_000_000n,
        until: end / 1_000_000n,
        ...free,
      },
    ];
    return claims;
  },
};

/** What a comparison with a list is told, where nothing else is said. */
export const LIST_TERMS: ListTerms = {
  region: '',
  projectIds: undefined,
  olderThan: 0n,
  isDryRun: false,
  claimants: [CLAIMANT],
  exemptProjects: [],
  ids: undefined,
  who: 'operator',
  reason: null,
};

export function by(operation: Author['operation']): Author {
  return { operation, who: 'alice', requestId: 'req-1', reason: null };
}

/** Resolves to whether it was open. */
export function endLease(ledger: Ledger, identity: LeaseIdentity, shape?: LeaseShape): Promise<boolean> {
  return ledger.end({ identity, shape }, by('end'), NO_WAIT);
}

/** Default: of alice in the project climate, the first day of December 2026. */
export async function recordLease(ledger: Ledger, lease: LeaseText): Promise<LeaseIdentity> {
  return (await recordNewLease(ledger, lease)).identity;
}

/** The same, with what was recorded. */
export async function recordNewLease(
  ledger: Ledger,
  lease: LeaseText,
): Promise<{ readonly identity: LeaseIdentity; readonly recording: Recording }> {
  const request = requestOf(lease);
  const recording = await ledger.commit(request, { ...by('create'), who: request.identity.userId }, NO_WAIT);
  return { identity: request.identity, recording };
}

export function requestOf(lease: LeaseText): LedgerRequest {
  const { leaseId = null, region = '', projectId = 'climate', userId = 'alice', name } = lease;
  const start = toInstant(lease.start ?? '2026-12-01') ?? 0n;
  const end = toInstant(lease.end ?? '2026-12-02') ?? 0n;
  const context = { project_id: projectId, user_id: userId };
  return {
    identity: { leaseId, region, projectId, userId },
    name,
    proposal: { context, start, end, reservations: [], allocationsAreExact: true },
    current: undefined,
    halfway: undefined,
    isCertain: false,
    adopts: false,
    repetition: undefined,
    claimants: [lease.claimant ?? CLAIMANT],
  };
}

/** SQLite ledgers that all begin alike: one is made, and the others are copies of its file, in a tenth of the time. */
export function copiedLedgers(make: (connection: string) => Promise<void>): () => Promise<string> {
  let content: Buffer | undefined;
  return async () => {
    if (content === undefined) {
      const file = join(temporaryFolder(), 'ledger.db');
      await upgradeTables({ dialect: 'sqlite', file });
      await make(`sqlite://${file}`);
      content = readFileSync(file);
    }
    return `sqlite://${temporaryFile('ledger.db', content)}`;
  };
}
