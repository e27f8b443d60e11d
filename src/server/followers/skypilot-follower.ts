/** Reconciles the ledger with SkyPilot, in rounds. */
import { readFile, stat } from 'node:fs/promises';
import type { DecisionRecord } from '../../decisions/record.ts';
import { type Bypass, type BypassKind, bypassRecord } from '../../decisions/review-record.ts';
import { type Configuration, sectionOf } from '../../enforcement/configuration.ts';
import type { Notifications } from '../../enforcement/notifications/notifications.ts';
import { createSharedServices } from '../../enforcement/services.ts';
import type { HttpObserver } from '../../http/contract.ts';
import type { ReconciliationResult } from '../../ledger/reconciliation/leader-lease.ts';
import type { ClusterChange } from '../../skypilot/charging/follow.ts';
import { skypilotSection } from '../../skypilot/section.ts';
import type { SkypilotParts } from '../configuration/generation.ts';
import type { SkypilotMetrics } from '../metrics/reconciliation-metrics.ts';
import { type Held, Reconciler, type ReconcilerParts, type ReconciliationTerms } from './reconciliation.ts';

interface FollowableSkypilot extends Held {
  readonly number: number;
  readonly configuration: Configuration;
  readonly skypilot: SkypilotParts;
  readonly enforcement: { readonly notifications: Pick<Notifications, 'bypassed'> | undefined };
}

interface SkypilotFollowerParts extends ReconcilerParts<FollowableSkypilot, SkypilotMetrics> {
  readonly httpObserver: HttpObserver | undefined;
  /** Called with each event that bypassed policies. Must not throw. */
  readonly record: (record: DecisionRecord) => Promise<void>;
}

/** In bytes: lists of clusters can be long. */
const MAX_ANSWER = 64 * 1024 * 1024;
const MAX_TOKEN_FILE = 65_536;

export class SkypilotFollower extends Reconciler<FollowableSkypilot, SkypilotMetrics> {
  protected readonly lines = {
    done: 'compared the ledger with SkyPilot',
    doubtful: 'no launch that SkyPilot does not show is given back: its answer is in doubt',
    failed: 'the ledger could not be compared with SkyPilot',
  };
  readonly #parts: SkypilotFollowerParts;
  #complaint = '';
  /** Events reported by the last round, if it was interrupted. */
  #told: ReadonlySet<string> = new Set();

  constructor(parts: SkypilotFollowerParts) {
    super(parts);
    this.#parts = parts;
  }

  protected intervalOf({ configuration, skypilot }: FollowableSkypilot): number | undefined {
    const isActive = (skypilot.policies.launches?.limits.length ?? 0) > 0;
    return isActive ? sectionOf(configuration, skypilotSection).api_server_interval : undefined;
  }

  protected async round({
    generation,
    ...terms
  }: ReconciliationTerms<FollowableSkypilot>): Promise<ReconciliationResult | undefined> {
    const { configuration, skypilot } = generation;
    const { logger, httpObserver } = this.#parts;
    const { launches } = skypilot.policies;
    const options = sectionOf(configuration, skypilotSection);
    const { api_server: url, api_server_timeout: timeout, api_server_token_file: file } = options;
    if (launches === undefined || url === undefined) {
      return undefined;
    }
    const { followSkypilot } = await import('../../skypilot/charging/follow.ts');
    const { SkypilotApiServer } = await import('../../skypilot/api-server.ts');
    const token = file === undefined ? options.api_server_token : await tokenOf(file);
    const services = createSharedServices({ logger, httpObserver });
    const server = new SkypilotApiServer({ url, token, timeout, maxAnswerBytes: MAX_ANSWER }, services);
    const bypasses = new Bypasses(this.#told);
    let isWhole = false;
    try {
      const round = await followSkypilot({
        ledger: await launches.ledger(terms),
        limits: launches.limits,
        server,
        ...terms,
        report: (change) => {
          this.#report(change);
          bypasses.add(change);
        },
      });
      isWhole = round.kind === 'done';
      return round;
    } finally {
      await server.close();
      // Also if the round failed halfway: earlier charges stay, and are not found again.
      this.#told = isWhole ? new Set() : bypasses.keys;
      await this.#tell(bypasses.all, generation);
    }
  }

  async #tell(found: readonly Bypass[], { number, enforcement }: FollowableSkypilot): Promise<void> {
    if (found.length === 0) {
      return;
    }
    const at = new Date();
    const records = found.map((bypass) => bypassRecord(bypass, at, number));
    for (const record of records) {
      await this.#parts.record(record);
    }
    await enforcement.notifications?.bypassed({ at, records });
  }

  #report({ limit: policy, workspace, cluster, settlement, error }: ClusterChange): void {
    const { metrics, logger } = this.#parts;
    const facts = { policy, workspace, cluster };
    if (settlement === undefined) {
      metrics.alert('unreadable');
      if (error !== this.#complaint) {
        logger.error(
          { ...facts, error },
          'a cluster stays charged as it was: it could not be compared with SkyPilot',
        );
      }
      this.#complaint = error ?? '';
      return;
    }
    const { outcome, row, projectId, userId, exceeded, hasLostAutostop } = settlement;
    metrics.changed(outcome);
    const all = { ...facts, outcome, row: String(row), project_id: projectId, user_id: userId };
    if (outcome === 'recorded') {
      metrics.alert('undecided');
      logger.warn(all, 'a cluster runs without a decision: it was started without asking a policy');
    } else if (outcome !== 'continued') {
      logger.info(all, 'the ledger was corrected to match SkyPilot');
    }
    if (hasLostAutostop) {
      metrics.alert('autostop-off');
      logger.warn(all, 'autostop was switched off after the launch');
    }
    if (exceeded !== undefined) {
      metrics.alert('exceeded');
      logger.warn({ ...all, reason: exceeded }, 'a cluster is up beyond a limit: nothing stops it');
    }
  }
}

/** The first line that is not a comment. Errors name the file, never its content. */
async function tokenOf(file: string): Promise<string> {
  const found = await stat(file);
  if (!found.isFile()) {
    // Reading a pipe might block forever.
    throw new Error(`${file}: expected a file with a token`);
  }
  if (found.size > MAX_TOKEN_FILE) {
    throw new Error(`${file}: expected a token, got more than ${MAX_TOKEN_FILE} bytes`);
  }
  const lines = (await readFile(file, 'utf8')).split('\n').map((line) => line.trim());
  const token = lines.find((line) => line !== '' && !line.startsWith('#')) ?? '';
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new Error(`${file}: expected a token of ASCII characters without spaces`);
  }
  return token;
}

export class Bypasses {
  readonly #found = new Map<string, Bypass>();
  /** Events reported by an earlier round that was interrupted before it had compared all policies. */
  readonly #told: ReadonlySet<string>;

  constructor(told: ReadonlySet<string> = new Set()) {
    this.#told = told;
  }

  /** Reports an event for each policy that charges launches. */
  add({ limit, workspace, cluster, startedAt, settlement }: ClusterChange): void {
    if (settlement === undefined) {
      return;
    }
    const kinds: BypassKind[] = [
      ...(settlement.outcome === 'recorded' ? ['undecided' as const] : []),
      ...(settlement.hasLostAutostop ? ['autostop-off' as const] : []),
    ];
    for (const kind of kinds) {
      const key = JSON.stringify([kind, workspace, cluster, String(startedAt)]);
      const before = this.#found.get(key);
      this.#found.set(key, {
        kind,
        workspace,
        cluster,
        startedAt,
        userId: settlement.userId,
        policies: [...(before?.policies ?? []), limit],
        exceeded: before?.exceeded ?? settlement.exceeded,
      });
    }
  }

  get all(): readonly Bypass[] {
    return [...this.#found].filter(([key]) => !this.#told.has(key)).map(([, bypass]) => bypass);
  }

  /** For the next round, if this one was interrupted. */
  get keys(): ReadonlySet<string> {
    return new Set([...this.#told, ...this.#found.keys()]);
  }
}
