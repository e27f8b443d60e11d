/** `test --record`: writes a case for each distinct decision of a log. */

import { createHash } from 'node:crypto';
import { closeSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { codeOf, InvalidRequestError } from '../../base/errors.ts';
import { visibleJson } from '../../base/visible-text.ts';
import { YamlDocument } from '../../base/yaml/document.ts';
import { isMapping, YamlError } from '../../base/yaml/tree.ts';
import { systemErrorText } from '../../config/read-file.ts';
import type { RequestNames } from '../../filter/verdict.ts';
import { MAX_TOKENS } from '../cases/case-files.ts';
import { ExitCode, onOneLine, UnwrittenError, UsageError, warn } from '../common/output.ts';
import type { SourceFlags } from '../common/sources.ts';
import { type LogFlags, LogRun } from './log-run.ts';
import type { PastDecision } from './past-decision.ts';

interface RecordFlags extends LogFlags, SourceFlags {}

/** In the order of the output. */
const COUNTS = {
  written: 'cases written',
  unchanged: 'cases there already',
  kept: 'cases there that say something else (--force replaces them)',
  repeated: 'decisions like one before',
  beyond: 'decisions beyond --max',
  impossible:
    'decisions without what a case needs: the request, or what the ledger, a service or Keystone said',
} as const;
type Count = keyof typeof COUNTS;

/** Writes cases, prints their number, and returns the exit code. @throws UsageError, ConfigurationError */
export async function record(
  logs: readonly string[],
  folders: readonly string[],
  flags: RecordFlags,
): Promise<number> {
  const run = await LogRun.open(logs, folders, flags);
  const seen = new Set<string>();
  const counts = new Map<Count, number>();
  const count = (what: Count) => void counts.set(what, (counts.get(what) ?? 0) + 1);
  try {
    await run.each(async (past) => {
      if (past.operation !== 'create' && past.operation !== 'update') {
        return;
      }
      const written = recordedCase(past);
      if (written === undefined) {
        count('impossible');
      } else if (seen.has(written.file)) {
        count('repeated');
      } else if (seen.size >= flags.max) {
        count('beyond');
      } else if (await needsMore(past, run)) {
        count('impossible');
      } else {
        seen.add(written.file);
        count(put(flags.out, written, flags.force === true));
      }
    });
  } finally {
    await run.close();
  }
  const { damaged } = run;
  for (const line of damaged.first) {
    warn(line);
  }
  const lines = Object.entries(COUNTS).flatMap(([what, text]) => {
    const many = counts.get(what as Count) ?? 0;
    return many > 0 || what === 'written' ? [`${many} ${text}`] : [];
  });
  process.stdout.write(`${onOneLine(flags.out)}: ${lines.join('\n  ')}\n`);
  if (damaged.count > 0) {
    process.stdout.write(`  ${damaged.count} lines that are not decisions\n`);
  }
  if (seen.size === 0) {
    throw new UsageError(`${logs.join(' ')}: no decision can be a case: see [service] decision_log_requests`);
  }
  return counts.has('kept') ? ExitCode.usage : ExitCode.ok;
}

/** Whether a filter of the configuration needs data that the log lacks. */
async function needsMore({ operation, request, now }: PastDecision, { replay }: LogRun): Promise<boolean> {
  if (request === undefined || (replay.usesNames && request.names === undefined)) {
    return true;
  }
  try {
    const asked = operation === 'create' ? 'create' : 'update';
    const { decision, unanswered } = await replay.judge({
      operation: asked,
      body: request,
      names: request.names,
      now,
    });
    // In a case, a filter that is called too early fails; one that is never called is harmless.
    return unanswered.length > 0 || (decision.failed && !decision.allowed);
  } catch (thrown) {
    if (thrown instanceof InvalidRequestError) {
      return true;
    }
    throw thrown;
  }
}

/** Replaces a file only if `mayReplace`. @throws UsageError, UnwrittenError */
function put(folder: string, { file, text }: RecordedCase, mayReplace: boolean): Count {
  const path = join(folder, file);
  try {
    mkdirSync(folder, { recursive: true });
    writeNew(path, text);
    return 'written';
  } catch (thrown) {
    if (codeOf(thrown) !== 'EEXIST') {
      throw notWritten(path, thrown);
    }
  }
  try {
    if (withoutTime(readFileSync(path, 'utf8')) === withoutTime(text)) {
      return 'unchanged';
    }
    if (mayReplace) {
      // Replaced atomically: on a full disk, the existing case remains.
      const beside = `${path}.${process.pid}.new`;
      writeNew(beside, text);
      renameSync(beside, path);
      return 'written';
    }
    return 'kept';
  } catch (thrown) {
    throw notWritten(path, thrown);
  }
}

/** Removes a partial file. Exclusive, so that it does not follow an existing link. */
function writeNew(path: string, text: string): void {
  const file = openSync(path, 'wx');
  try {
    writeFileSync(file, text);
  } catch (thrown) {
    rmSync(path, { force: true });
    throw thrown;
  } finally {
    closeSync(file);
  }
}

const NO_ROOM = ['ENOSPC', 'EDQUOT', 'EFBIG', 'EIO'];

function notWritten(path: string, thrown: unknown): Error {
  const message = `${path}: could not be written: ${systemErrorText(thrown)}`;
  return NO_ROOM.includes(codeOf(thrown)) ? new UnwrittenError(message) : new UsageError(message);
}

/** The same decision at another time gives the same case. */
function withoutTime(text: string): string {
  return text.replace(/^ {2}"(?:name|now)": .*\n/gm, '');
}

interface RecordedCase {
  /** Equal for equal decisions in any log. */
  readonly file: string;
  readonly text: string;
}

/** The log cuts longer messages; a case expects only a part of the message. */
const CUT = '…';
const MAX_NAME = 40;
const SPACES = 2;

/** `undefined` = no case is possible: it failed then, or Keystone did not provide names. */
function recordedCase(past: PastDecision): RecordedCase | undefined {
  const { operation, request, failed, time } = past;
  if (request === undefined || failed || past.outcome === 'allowed-on-error') {
    return undefined;
  }
  const { context, lease, current_lease } = request;
  const keystone = request.names === undefined ? {} : { keystone: accountsOf(context, request.names) };
  if (keystone.keystone === null) {
    return undefined;
  }
  const body = { context, lease, ...(current_lease !== undefined && { current_lease }) };
  const written = { operation, request: body, ...keystone, expect: expectationOf(past) };
  // Without values that differ when the same request is repeated.
  const digest = createHash('sha256').update(JSON.stringify(written)).digest('hex').slice(0, 16);
  const text = `${visibleJson(JSON.stringify({ name: nameOf(past), now: time, ...written }, null, SPACES))}\n`;
  return isReadAs(text, body) ? { file: `${fileName(past)}-${digest}.yaml`, text } : undefined;
}

/** JSON is YAML, except with member names over 1024 characters or more values than a case may have. */
function isReadAs(text: string, body: object): boolean {
  try {
    const { value } = YamlDocument.parse(text, MAX_TOKENS);
    return isMapping(value) && isDeepStrictEqual(value.request, JSON.parse(JSON.stringify(body)));
  } catch (thrown) {
    if (thrown instanceof YamlError) {
      return false;
    }
    throw thrown;
  }
}

/** For display, so any text is allowed. */
function nameOf({ operation, lease_name, project_id, time }: PastDecision): string {
  return `${operation} ${lease_name ?? 'a lease'} of ${project_id ?? 'a project'}, ${time}`;
}

function fileName({ allowed, filter, operation }: PastDecision): string {
  const by = allowed ? 'allowed' : `rejected-by-${filter ?? 'nobody'}`;
  const plain = `${operation}-${by}`.toLowerCase().replace(/[^a-z0-9]+/g, '-');
  return plain.slice(0, MAX_NAME).replace(/-$/, '');
}

function expectationOf({ allowed, filter, message }: PastDecision): unknown {
  if (allowed) {
    return 'allowed';
  }
  const part = message?.endsWith(CUT) ? message.slice(0, -CUT.length) : message;
  return {
    answer: 'rejected',
    ...(filter !== null && { filter }),
    ...(part && { rejected: literally(part) }),
  };
}

/** Quotes a message in slashes, which would be read as a regular expression. */
function literally(message: string): string {
  return /^\/.+\/i?$/s.test(message) ? `/^${message.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')}/` : message;
}

/** `null` = unknown to Keystone, which a case cannot express. */
function accountsOf(context: unknown, { project, user }: RequestNames): object | null {
  const { project_id, user_id } = context as Readonly<Record<string, unknown>>;
  if (project === undefined || user === undefined || project.domain === '' || user.domain === '') {
    return null;
  }
  if (typeof project_id !== 'string' || typeof user_id !== 'string') {
    return null;
  }
  // `JSON.stringify` keeps `__proto__` if it is an own member.
  return {
    projects: Object.fromEntries([
      [project_id, { name: project.name, domain: project.domain, tags: project.tags }],
    ]),
    users: Object.fromEntries([[user_id, { name: user.name, domain: user.domain }]]),
  };
}
