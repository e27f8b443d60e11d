/**
 * Commits in doubt: the lease was refused but may be recorded, because the database did not confirm a commit,
 * or was not available to roll it back. The lease stays charged until a retry succeeds.
 *
 * Each is stored in a file, since the database is unavailable at that time. Rejected: a mark in the
 * transaction, cleared after the acknowledgement. Clearing it before the response costs a second commit per
 * lease, twice the time. Clearing it after the response leaves marks on granted leases if the process dies,
 * and removing those leases would break the limit.
 *
 * Processes may share the folder: each takes over the files that it finds. The first one takes the recording
 * back, which changes its revision, so that the others find nothing. A file is deleted when its doubt is
 * settled.
 */
import { randomUUID } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { errorText } from '../base/errors.ts';
import type { Logger } from '../base/logger.ts';
import { outsideTraces } from '../base/tracing.ts';
import { leaseColumns } from './folding/folded-lease.ts';
import type { Author } from './transactions/journal.ts';
import type { Undo } from './transactions/lease-transactions.ts';

export interface InDoubtCommit {
  readonly undo: Undo;
  readonly author: Author;
}

interface InDoubtParts {
  /** `undefined` = doubts are kept in memory only. */
  readonly folder: string | undefined;
  readonly logger: Pick<Logger, 'error' | 'warn' | 'info'> | undefined;
  /** The id of the open ledger. Rejects while the ledger is unavailable. */
  readonly ledgerId: () => Promise<string>;
  /** Resolves to whether a recording was taken back. Rejects while that is unknown. */
  readonly takeBack: (doubt: InDoubtCommit) => Promise<boolean>;
  readonly count: (doubts: number) => void;
}

interface Kept extends InDoubtCommit {
  /** `undefined` = in memory only. */
  file: string | undefined;
  /** The id of its ledger; `undefined` = the open one. */
  readonly ledger: string | undefined;
  /** Found in the folder: the process that wrote it may be settling it, too. */
  readonly isShared: boolean;
}

/** Pause between two attempts, in milliseconds. */
const SHORTEST_PAUSE = 250;
const LONGEST_PAUSE = 15_000;
/** Interval of reading the folder, in milliseconds: another process may have left a file. */
const FOLDER_PAUSE = 60_000;
const ENDING = '.doubt.json';

export class InDoubtCommits {
  readonly #parts: InDoubtParts;
  readonly #kept = new Set<Kept>();
  /** Files of other ledgers. */
  readonly #foreign = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #pause = SHORTEST_PAUSE;
  #settling: Promise<void> | undefined;
  #isClosed = false;

  constructor(parts: InDoubtParts) {
    this.#parts = parts;
  }

  /** Takes over the files of earlier processes. */
  open(): void {
    this.#readFolder();
    this.#again(0);
  }

  /** Returns after the doubt is synced to disk, unless the folder is not writable. */
  add(doubt: InDoubtCommit, ledger: string | undefined): void {
    const kept: Kept = { ...doubt, ledger, file: this.#write(doubt, ledger), isShared: false };
    this.#kept.add(kept);
    this.#parts.count(this.#kept.size);
    const { projectId: project_id, lease } = doubt.undo;
    this.#parts.logger?.error(
      { project_id, lease_row: String(lease), request_id: doubt.author.requestId, file: kept.file },
      'a refused lease may be recorded nevertheless: it stays charged until the database answers, and is taken back then',
    );
    this.#pause = SHORTEST_PAUSE;
    this.#again(0);
  }

  /** Unsettled doubts stay in their files for the next process. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#settling;
    for (const { file, undo } of this.#kept) {
      if (file === undefined) {
        this.#parts.logger?.error(
          { project_id: undo.projectId, lease_row: String(undo.lease) },
          'a refused lease may stay charged: the process ended before the database answered; ledger reconcile releases it',
        );
      }
    }
  }

  #again(milliseconds: number): void {
    clearTimeout(this.#timer);
    if (!this.#isClosed) {
      this.#timer = setTimeout(() => {
        this.#settling ??= outsideTraces(() => this.#settle()).finally(() => {
          this.#settling = undefined;
        });
      }, milliseconds);
      // Does not keep the process alive: the next process reads the files.
      this.#timer.unref();
    }
  }

  async #settle(): Promise<void> {
    // Those that are added meanwhile too.
    for (const doubt of this.#kept) {
      if (this.#isClosed) {
        return;
      }
      try {
        await this.#settleOne(doubt);
      } catch {
        // Still unavailable. The failed transaction was counted already.
        this.#again(this.#pause * (0.5 + Math.random()));
        this.#pause = Math.min(2 * this.#pause, LONGEST_PAUSE);
        return;
      }
    }
    this.#pause = SHORTEST_PAUSE;
    this.#readFolder();
    this.#again(this.#kept.size === 0 ? FOLDER_PAUSE : LONGEST_PAUSE);
  }

  async #settleOne(doubt: Kept): Promise<void> {
    const { undo, file, ledger, isShared } = doubt;
    if (ledger !== undefined && ledger !== (await this.#parts.ledgerId())) {
      // It belongs to another ledger: leave it to the processes that use that ledger.
      this.#foreign.add(file ?? '');
      this.#forget(doubt);
      return;
    }
    if (isShared && file !== undefined && !existsSync(file)) {
      // Another process has settled it.
      this.#forget(doubt);
      return;
    }
    const wasThere = await this.#parts.takeBack(doubt);
    this.#forget(doubt);
    if (file !== undefined) {
      rmSync(file, { force: true });
    }
    this.#parts.logger?.warn(
      { project_id: undo.projectId, lease_row: String(undo.lease) },
      wasThere
        ? 'a refused lease was recorded, and has been taken back'
        : 'a refused lease was not recorded, or has been granted since: nothing was taken back',
    );
  }

  #forget(doubt: Kept): void {
    this.#kept.delete(doubt);
    this.#parts.count(this.#kept.size);
  }

  #write(doubt: InDoubtCommit, ledger: string | undefined): string | undefined {
    const { folder, logger } = this.#parts;
    if (folder === undefined) {
      return undefined;
    }
    const file = join(folder, `${randomUUID()}${ENDING}`);
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      const draft = openSync(`${file}.new`, 'wx', 0o600);
      try {
        writeSync(draft, formatDoubt(doubt, ledger));
        fsyncSync(draft);
      } finally {
        closeSync(draft);
      }
      renameSync(`${file}.new`, file);
      syncFolder(folder);
      return file;
    } catch (thrown) {
      logger?.error(
        { error: errorText(thrown) },
        'a commit in doubt cannot be written to [ledger] doubt_folder: it is lost when this process ends',
      );
      return undefined;
    }
  }

  #readFolder(): void {
    const { folder, logger } = this.#parts;
    const known = new Set([...this.#kept].map(({ file }) => file));
    for (const name of folder === undefined ? [] : namesIn(folder)) {
      const file = join(folder ?? '', name);
      if (!name.endsWith(ENDING) || known.has(file) || this.#foreign.has(file)) {
        continue;
      }
      try {
        this.#kept.add({ ...parseDoubt(readFileSync(file, 'utf8')), file, isShared: true });
      } catch (thrown) {
        if (!existsSync(file)) {
          // Another process has settled it in the meantime.
          continue;
        }
        logger?.error({ file, error: errorText(thrown) }, 'a file in [ledger] doubt_folder cannot be read');
      }
    }
    this.#parts.count(this.#kept.size);
  }
}

/** Without this, a new file name may be lost in a power failure. */
function syncFolder(folder: string): void {
  const opened = openSync(folder, 'r');
  try {
    fsyncSync(opened);
  } finally {
    closeSync(opened);
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

const integer = z
  .string()
  .regex(/^-?\d{1,40}$/)
  .transform(BigInt);

/** Files of older versions lack some columns. */
const row = z.object({
  ...leaseColumns,
  alternatives: leaseColumns.alternatives.default(null),
  repetition_key: leaseColumns.repetition_key.default(null),
  repetition_content: leaseColumns.repetition_content.default(null),
  touched_at: leaseColumns.touched_at.default(0n),
  shown: leaseColumns.shown.default(null),
  resources: leaseColumns.resources.default(null),
});

const written = z.object({
  ledger: z.string().optional(),
  lease: integer,
  project_id: z.string(),
  before: row.optional(),
  revision: integer,
  deltas: z.array(z.tuple([z.string(), integer])),
  author: z.object({ who: z.string(), requestId: z.string().nullable(), reason: z.string().nullable() }),
});

function formatDoubt({ undo, author }: InDoubtCommit, ledger: string | undefined): string {
  const { lease, projectId: project_id, before, revision, deltas } = undo;
  const { who, requestId, reason } = author;
  const content = {
    ledger,
    lease,
    project_id,
    before,
    revision,
    deltas: [...deltas],
    author: { who, requestId, reason },
  };
  return JSON.stringify(content, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
}

function parseDoubt(text: string): InDoubtCommit & { readonly ledger: string | undefined } {
  const { ledger, lease, project_id, before, revision, deltas, author } = written.parse(JSON.parse(text));
  return {
    ledger,
    undo: { lease, projectId: project_id, before, revision, deltas: new Map(deltas) },
    author: { operation: 'undo', ...author },
  };
}
