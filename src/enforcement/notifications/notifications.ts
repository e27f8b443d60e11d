/** Runs `[notifications]`: turns what happens into events in the outbox, which delivers them. */
import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { type Wait, waitFor } from '../../base/deadline.ts';
import { errorText } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import { outsideTraces } from '../../base/tracing.ts';
import type { SharedServices } from '../../filter/services.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { ChainOutbox } from '../../ledger/outbox/chain-outbox.ts';
import type { BudgetWatch } from '../../ledger/outbox/crossings.ts';
import { MAIL_NOTICES, messagesOf, NOTICES, type Notice } from '../../ledger/outbox/messages.ts';
import { addMessages } from '../../ledger/outbox/statements.ts';
import type { ChainLedger } from '../../ledger/service.ts';
import { rows, Undone, type Work } from '../../ledger/storage/database.ts';
import {
  bypassedEvent,
  type Comparison,
  correctedEvent,
  type FoundBypasses,
  type Refusals,
  type Refused,
  refusedEvent,
  requestEvent,
  thresholdEvent,
} from './events.ts';
import type { EventKind, NotificationsOptions } from './options.ts';
import { Webhook } from './webhook.ts';

/** Above this many undelivered events, refusals and corrections are dropped; thresholds and requests never are. */
const MOST_UNDELIVERED = 1000;
/** Concurrent writes of notices. A slow database must not fill the memory. */
const MOST_WRITING = 100;

interface NotificationsParts {
  readonly options: NotificationsOptions;
  readonly ledger: ChainLedger;
  readonly outbox: ChainOutbox;
  readonly services: SharedServices;
  readonly dropped: (event: EventKind) => void;
}

/** The ledger's watch for budget events. The options must have a receiver. */
export function budgetWatch(options: NotificationsOptions): BudgetWatch {
  const { webhook_url, smtp_url, events, budget_thresholds, source } = options;
  const thresholds = [...new Set(budget_thresholds)].sort((one, other) => one - other);
  return {
    thresholds: events.includes('budget.threshold') ? thresholds : [],
    senders: [
      ...(webhook_url === undefined ? [] : [NOTICES]),
      ...(smtp_url === undefined ? [] : [MAIL_NOTICES]),
    ],
    body: (crossing, key) => thresholdEvent(source, key, crossing),
    requestBody: events.includes('budget.request')
      ? (request, key) => requestEvent(source, key, request)
      : undefined,
  };
}

/** `undefined` = not enabled, or nothing was changed. */
function correctedNotice(
  { webhook_url, events, source }: NotificationsOptions,
  comparison: Comparison,
): Notice | undefined {
  if (webhook_url === undefined || !events.includes('ledger.corrected') || comparison.corrections.isEmpty) {
    return undefined;
  }
  const key = randomUUID();
  const body = correctedEvent(source, key, comparison);
  return { about: ['ledger'], projectId: '', key, body };
}

/**
 * For processes with only a ledger. Resolves to whether an event, if any, was written.
 * @throws LedgerUnavailableError
 */
export async function announceCorrections(
  ledger: Ledger,
  options: NotificationsOptions,
  comparison: Comparison,
): Promise<boolean> {
  const notice = correctedNotice(options, comparison);
  return notice === undefined || addNotices(ledger, [notice], waitFor(undefined));
}

export class Notifications {
  readonly #parts: NotificationsParts;
  readonly #logger: Logger;
  /** The only receiver of refusals, corrections and bypasses. */
  readonly #webhook: Webhook | undefined;
  readonly #refusals: MergedRefusals | undefined;
  readonly #writing = new Set<Promise<void>>();
  #isDropping = false;

  private constructor(parts: NotificationsParts, webhook: Webhook | undefined) {
    this.#parts = parts;
    this.#logger = parts.services.logger;
    this.#webhook = webhook;
    this.#refusals =
      webhook !== undefined && parts.options.events.includes('lease.refused')
        ? new MergedRefusals((refusals) => this.#tell(refusals))
        : undefined;
  }

  /** The options must have a receiver. @throws ConfigurationError if there is no usable ledger */
  static async open(parts: NotificationsParts): Promise<Notifications> {
    const { options, outbox, services } = parts;
    const { webhook_url, smtp_url } = options;
    const webhook = webhook_url === undefined ? undefined : new Webhook(webhook_url, options, services);
    try {
      if (webhook !== undefined) {
        await outbox.open(webhook);
      }
      if (smtp_url !== undefined) {
        const { Mail } = await import('./mail.ts');
        await outbox.open(new Mail(smtp_url, options, services.logger));
      }
    } catch (thrown) {
      await webhook?.close();
      throw thrown;
    }
    return new Notifications(parts, webhook);
  }

  /** Never waits and never throws. */
  refused(refused: Refused): void {
    this.#refusals?.add(refused);
  }

  /** Never throws. */
  async corrected(comparison: Comparison): Promise<void> {
    const notice = correctedNotice(this.#parts.options, comparison);
    if (notice !== undefined) {
      await this.#write('ledger.corrected', notice);
    }
  }

  /** Never throws. */
  async bypassed(found: FoundBypasses): Promise<void> {
    const { events, source } = this.#parts.options;
    if (this.#webhook !== undefined && events.includes('skypilot.bypassed')) {
      const key = randomUUID();
      const body = bypassedEvent(source, key, found);
      await this.#write('skypilot.bypassed', { about: ['skypilot'], projectId: '', key, body });
    }
  }

  /** Writes pending refusals. Call it before the outbox is closed. */
  async settle(): Promise<void> {
    this.#refusals?.close();
    await Promise.all(this.#writing);
  }

  /** Call it after the outbox was closed. */
  async close(): Promise<void> {
    await this.#webhook?.close();
  }

  #tell(refusals: Refusals): void {
    if (this.#writing.size >= MOST_WRITING) {
      this.#drop('lease.refused', 'too many events are being written');
      return;
    }
    const key = randomUUID();
    const body = refusedEvent(this.#parts.options.source, key, refusals);
    const projectId = (refusals.isMixed ? null : refusals.last.project_id) ?? '';
    const about = ['refusals', projectId];
    const written = this.#write('lease.refused', { about, projectId: shown(projectId), key, body });
    this.#writing.add(written);
    void written.then(() => this.#writing.delete(written));
  }

  async #write(event: EventKind, notice: Notice): Promise<void> {
    const { ledger } = this.#parts;
    try {
      const wait = waitFor(undefined);
      const isWritten = await addNotices(await ledger.ledger(wait), [notice], wait);
      if (isWritten) {
        this.#isDropping = false;
        this.#parts.outbox.wake(NOTICES);
      } else {
        this.#drop(event, `${MOST_UNDELIVERED} events are not delivered`);
      }
    } catch (thrown) {
      this.#drop(event, errorText(thrown));
    }
  }

  /** Logged once, until the next successful write. */
  #drop(event: EventKind, error: string): void {
    this.#parts.dropped(event);
    if (!this.#isDropping) {
      this.#isDropping = true;
      this.#logger.warn(
        { filter: NOTICES, event, error },
        'events about refusals and corrections are not written: see the decision log and the entries of the ledger instead',
      );
    }
  }
}

/** In a form that every database can store. */
function shown(id: string): string {
  return id.replaceAll('\0', '\ufffd').replace(/\p{Surrogate}/gu, '\ufffd');
}

/**
 * Writes notices, unless `MOST_UNDELIVERED` are queued or dead: an unavailable receiver must not fill the
 * database. Resolves to whether they were written. @throws LedgerUnavailableError
 */
function addNotices(ledger: Ledger, notices: readonly Notice[], wait: Wait): Promise<boolean> {
  const { queries } = ledger.database;
  const undelivered = sql<{ notices: bigint }>`
    select count(*) as notices from (
      select 1 from outbox where sender = ${NOTICES} and state in ('waiting', 'dead') limit ${MOST_UNDELIVERED}
    ) as undelivered`;
  return ledger.transact(
    'outbox',
    function* (): Work<boolean | Undone<boolean>> {
      const [found] = yield* rows(undelivered.compile(queries));
      if (Number(found?.notices ?? 0n) >= MOST_UNDELIVERED) {
        return new Undone(false);
      }
      const messages = notices.flatMap((notice) => messagesOf(notice, [NOTICES]));
      yield* addMessages(queries, messages, ledger.now());
      return true;
    },
    wait,
  );
}

/** In milliseconds. */
const WINDOW = 60_000;
/** Separate events per minute, by project, user and filter; all further refusals are one event. */
const MOST = 100;
const OTHERS = 'others';

/**
 * Merged refusals of leases: a thousand refusals of one client per second are one event per minute. The first
 * refusal is reported at once, later ones within a minute at its end.
 */
export class MergedRefusals {
  readonly #tell: (refusals: Refusals) => void;
  /** `undefined` = reported in this window, and not refused since. */
  readonly #merged = new Map<string, Refusals | undefined>();
  #timer: NodeJS.Timeout | undefined;

  /** `tell` is called at most once per project, user, filter and minute. */
  constructor(tell: (refusals: Refusals) => void) {
    this.#tell = tell;
  }

  add(refused: Refused): void {
    const own = JSON.stringify([refused.project_id, refused.user_id, refused.filter]);
    const isMixed = !this.#merged.has(own) && this.#merged.size >= MOST;
    const key = isMixed ? OTHERS : own;
    if (!isMixed && !this.#merged.has(key)) {
      this.#merged.set(key, undefined);
      this.#tell({ last: refused, isMixed, count: 1, firstAt: refused.time });
      this.#begin();
      return;
    }
    const { count, firstAt } = this.#merged.get(key) ?? { count: 0, firstAt: refused.time };
    this.#merged.set(key, { last: refused, isMixed, count: count + 1, firstAt });
  }

  /** Reports the rest. */
  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const one of this.#merged.values()) {
      if (one !== undefined) {
        this.#tell(one);
      }
    }
    this.#merged.clear();
  }

  #begin(): void {
    this.#timer ??= setTimeout(() => outsideTraces(() => this.#over()), WINDOW).unref();
  }

  /** Keys refused in this window are next reported at the end of the next one. */
  #over(): void {
    const rest = [...this.#merged];
    this.#timer = undefined;
    this.#merged.clear();
    for (const [key, one] of rest) {
      if (one !== undefined) {
        if (key !== OTHERS) {
          this.#merged.set(key, undefined);
        }
        this.#tell(one);
        this.#begin();
      }
    }
  }
}
