/** The ledger for policies that charge launches. */
import { waitFor } from '../../base/deadline.ts';
import type { Logger } from '../../base/logger.ts';
import { type Configuration, sectionOf } from '../../enforcement/configuration.ts';
import { watchOf } from '../../enforcement/configured-notifications.ts';
import type { EnforcementServices } from '../../enforcement/services.ts';
import { SYSTEM_CLOCK } from '../../filter/services.ts';
import { allow, type Call, reject, type Verdict } from '../../filter/verdict.ts';
import type { LeaseIdentity } from '../../ledger/identity.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { ledgerSection } from '../../ledger/options.ts';
import { holdCluster, isIdle, previewCluster } from '../../ledger/reconciliation/hold-cluster.ts';
import { ChainLedger } from '../../ledger/service.ts';
import { Undone, type Work } from '../../ledger/storage/database.ts';
import { findById } from '../../ledger/transactions/find-lease.ts';
import type { Transaction } from '../../ledger/transactions/transaction.ts';
import { skypilotSection } from '../section.ts';
import { identityOf, knownHardware, launchRequest } from './cluster-request.ts';
import type { Launch, LaunchLedger, LaunchLimit } from './contract.ts';
import { BEHIND, isCounted, NOT_COUNTED, readCountedAt, takesLimited } from './counted-clusters.ts';

interface LaunchServices extends EnforcementServices {
  readonly logger: Logger;
  /** Default: no. */
  readonly recordsLaunches?: boolean;
}

/** The policy that would have charged a request. */
interface ChargingPolicy {
  /** An enforced one, if any. `null` = no policy charges anything. */
  readonly policy: string | null;
  /** Whether an uncharged request must be refused: not if only audited policies hold launches. */
  readonly binds: boolean;
}

/** Why a launch no longer fits: another one took what was left. */
interface Overtaken {
  readonly policy: string;
  readonly message: string;
}

const STARTS_STOPPED =
  'SkyPilot starts a stopped cluster with the hardware that it had. If the cluster was torn down, try again in a minute.';

/** A launch that fits, to be charged when all policies have accepted it. */
interface HeldLaunch {
  readonly limit: LaunchLimit;
  readonly audit: boolean;
  readonly launch: Launch;
  readonly identity: LeaseIdentity;
  readonly seconds: number;
}

/** @throws ConfigurationError if there is no usable ledger */
export async function openLaunchLedger(
  configuration: Configuration,
  services: LaunchServices,
): Promise<OpenLaunchLedger> {
  const { logger, clock = SYSTEM_CLOCK, ledgerObserver: observer } = services;
  const watch = await watchOf(configuration);
  const chain = new ChainLedger(sectionOf(configuration, ledgerSection), { logger, clock, observer, watch });
  try {
    await chain.open();
  } catch (thrown) {
    await chain.close();
    throw thrown;
  }
  const { api_server_interval: interval } = sectionOf(configuration, skypilotSection);
  return new OpenLaunchLedger(chain, services.recordsLaunches ?? false, interval * BEHIND);
}

/** The ledger of a chain of policies. Closed with the chain. */
export class OpenLaunchLedger implements LaunchLedger {
  readonly #chain: ChainLedger;
  readonly #records: boolean;
  /** Maximum lag of a limit's rounds behind those of others, in seconds. */
  readonly #behind: number;
  readonly #limits: LaunchLimit[] = [];
  /** The first limit that is enforced. */
  #enforced: LaunchLimit | undefined;
  /** Launches of requests that are not accepted yet. */
  readonly #held = new WeakMap<Call, readonly HeldLaunch[]>();

  constructor(chain: ChainLedger, records: boolean, behind: number) {
    this.#chain = chain;
    this.#behind = behind;
    this.#records = records;
  }

  /** Including limits of policies that are not enforced. */
  get limits(): readonly LaunchLimit[] {
    return this.#limits;
  }

  get views(): ChainLedger {
    return this.#chain;
  }

  /** For an audited policy: charges its launches even if they do not fit, as for audited filters. */
  get tried(): LaunchLedger {
    return {
      attach: (limit) => {
        this.#limits.push(limit);
      },
      check: (...asked) => this.check(...asked),
      hold: (limit, launch, call, seconds = limit.hold) =>
        this.#judge(limit, launch, call, seconds, this.#records, true),
    };
  }

  /** Launches held with a policy's own call are charged with `call`. */
  adopt(own: Call, call: Call): void {
    this.#held.set(call, [...(this.#held.get(call) ?? []), ...(this.#held.get(own) ?? [])]);
  }

  /** The policy to report if a request cannot be charged. Call it before `charge`. */
  chargingPolicyOf(call: Call): ChargingPolicy {
    const held = this.#held.get(call) ?? [];
    const { limit } = held.find(({ audit }) => !audit) ?? {};
    const any = limit ?? held[0]?.limit ?? this.#enforced ?? this.#limits[0];
    return { policy: any?.name ?? null, binds: held.length === 0 || limit !== undefined };
  }

  attach(limit: LaunchLimit): void {
    this.#enforced ??= limit;
    this.#limits.push(limit);
  }

  /** The ledger itself. @throws LedgerUnavailableError */
  ledger({ signal, wait = waitFor(signal) }: Pick<Call, 'signal' | 'wait'>): Promise<Ledger> {
    return this.#chain.ledger(wait);
  }

  check(limit: LaunchLimit, launch: Launch, call: Call): Promise<Verdict> {
    return this.#judge(limit, launch, call, limit.hold, false);
  }

  hold(limit: LaunchLimit, launch: Launch, call: Call, seconds = limit.hold): Promise<Verdict> {
    return this.#judge(limit, launch, call, seconds, this.#records);
  }

  /**
   * Charges everything that policies have held with this call, or nothing. Resolves to the reason why it no
   * longer fits; `undefined` = it is charged. @throws LedgerUnavailableError
   */
  async charge(call: Call): Promise<Overtaken | undefined> {
    const held = this.#held.get(call) ?? [];
    this.#held.delete(call);
    if (held.length === 0) {
      return undefined;
    }
    const ledger = await this.ledger(call);
    const { database, statements } = ledger;
    const projects = [...new Set(held.map(({ identity }) => identity.projectId))];
    function* all(transaction: Transaction): Work<Overtaken | undefined | Undone<Overtaken>> {
      if (projects.length > 1) {
        yield* transaction.lockAll(database, projects);
      }
      for (const { limit, audit, launch, identity, seconds } of held) {
        const now = ledger.now();
        const started = yield* startedLaunch(ledger, launch, identity, now);
        const requestOf = (userId: string) => {
          const owner =
            userId === identity.userId ? started.owner : { ...started.owner, userId, userName: '' };
          const terms = { now, seconds, audit };
          return launchRequest(limit, { ...started, owner }, { ...identity, userId }, terms);
        };
        const author = { operation: 'create', who: identity.userId, requestId: null, reason: null } as const;
        const outcome = yield* holdCluster(statements, identity, requestOf, transaction, author);
        const { refusal } = outcome instanceof Undone ? outcome.result : outcome;
        if (refusal !== undefined) {
          return new Undone({ policy: limit.name, message: refusal.message });
        }
      }
      return undefined;
    }
    return ledger.transact<Overtaken | undefined>('commit', all, call.wait ?? waitFor(call.signal), {
      project: projects.length > 1 ? undefined : projects[0],
      isRefused: (overtaken) => overtaken !== undefined,
    });
  }

  close(): Promise<void> {
    return this.#chain.close();
  }

  async #judge(
    limit: LaunchLimit,
    launch: Launch,
    call: Call,
    seconds: number,
    holds: boolean,
    audit = false,
  ): Promise<Verdict> {
    const payer = limit.payerOf(launch.owner);
    if ('allowed' in payer) {
      return payer;
    }
    const identity = identityOf(limit, launch.owner, launch.cluster, payer);
    if ('allowed' in identity) {
      return identity;
    }
    const ledger = await this.ledger(call);
    const wait = call.wait ?? waitFor(call.signal);
    const held = { limit, audit, launch, identity, seconds };
    const judged = await ledger.read('check', () => this.#preview(ledger, held), wait);
    const { refusal } = judged;
    if (holds && (audit || refusal === undefined)) {
      this.#held.set(call, [...(this.#held.get(call) ?? []), held]);
    }
    return refusal === undefined ? allow() : reject(refusal.message);
  }

  *#preview(
    ledger: Ledger,
    { limit, launch, identity, seconds }: HeldLaunch,
  ): Work<{ readonly refusal: { readonly message: string } | undefined }> {
    const now = ledger.now();
    const started = yield* startedLaunch(ledger, launch, identity, now);
    const request = launchRequest(limit, started, identity, { now, seconds });
    const { refusal, isCovered } = yield* previewCluster(ledger.statements, request, now);
    if (refusal !== undefined && started !== launch) {
      return { refusal: { message: `${refusal.message} ${STARTS_STOPPED}` } };
    }
    if (refusal !== undefined || isCovered || limit.believed === undefined) {
      return { refusal };
    }
    const isKnown =
      isCounted(limit, yield* readCountedAt(ledger), now, this.#behind) ||
      !takesLimited(limit, started, request.proposal, now);
    return { refusal: isKnown ? undefined : { message: NOT_COUNTED } };
  }
}

/** A stopped cluster starts with the hardware that it had, even if the launch asks for less. */
function* startedLaunch(
  { statements }: Ledger,
  launch: Launch,
  identity: LeaseIdentity,
  now: bigint,
): Work<Launch> {
  const row = yield* findById(statements, identity);
  const had = row === undefined || !isIdle(row, now) ? undefined : knownHardware(row);
  return had === undefined ? launch : { ...launch, alternatives: [had, ...launch.alternatives] };
}
