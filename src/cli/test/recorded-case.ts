/** A past decision as a case: what was asked for, when, and what was decided. */
import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { visibleJson } from '../../base/visible-text.ts';
import type { RequestNames } from '../../filter/request-names.ts';
import { YamlDocument } from '../../yaml/document.ts';
import { YamlError } from '../../yaml/error.ts';
import { isMapping } from '../../yaml/tree.ts';
import { MAX_TOKENS } from '../cases/case-files.ts';
import type { PastDecision } from './past-decision.ts';

export interface RecordedCase {
  /** The same for the same decision in any log. */
  readonly file: string;
  readonly text: string;
}

/** Longer messages were cut by the log; those of cases say so by being parts of them. */
const CUT = '…';
const MAX_NAME = 40;
const SPACES = 2;

/** `undefined` = it cannot be written as a case: it failed then, or Keystone did not tell who it was. */
export function recordedCase(past: PastDecision): RecordedCase | undefined {
  const { operation, request, failed, time } = past;
  if (request === undefined || failed || past.outcome === 'allowed-on-error') {
    return undefined;
  }
  const { context, lease, current_lease } = request.body as Readonly<Record<string, unknown>>;
  const keystone = request.names === undefined ? {} : { keystone: accountsOf(context, request.names) };
  if (keystone.keystone === null) {
    return undefined;
  }
  const body = { context, lease, ...(current_lease !== undefined && { current_lease }) };
  const written = { operation, request: body, ...keystone, expect: expectationOf(past) };
  // Without what differs when somebody asks again for the same.
  const digest = createHash('sha256').update(JSON.stringify(written)).digest('hex').slice(0, 16);
  const text = `${visibleJson(JSON.stringify({ name: nameOf(past), now: time, ...written }, null, SPACES))}\n`;
  return isReadAs(text, body) ? { file: `${fileName(past)}-${digest}.yaml`, text } : undefined;
}

/** Nearly all JSON is YAML: but not a member with a name of more than 1024 characters, or more values than a case may have. */
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

/** A name is shown to people, and may be anything. */
function nameOf({ operation, leaseName, projectId, time }: PastDecision): string {
  return `${operation} ${leaseName ?? 'a lease'} of ${projectId ?? 'a project'}, ${time}`;
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

/** A message in slashes would be taken for a regular expression. */
function literally(message: string): string {
  return /^\/.+\/i?$/s.test(message) ? `/^${message.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')}/` : message;
}

/** `null` = Keystone did not know one of them, which a case cannot say. */
function accountsOf(context: unknown, { project, user }: RequestNames): object | null {
  const { project_id, user_id } = context as Readonly<Record<string, unknown>>;
  if (project === undefined || user === undefined || project.domain === '' || user.domain === '') {
    return null;
  }
  if (typeof project_id !== 'string' || typeof user_id !== 'string') {
    return null;
  }
  // `JSON.stringify` keeps `__proto__` if it is a member of its own.
  return {
    projects: Object.fromEntries([
      [project_id, { name: project.name, domain: project.domain, tags: project.tags }],
    ]),
    users: Object.fromEntries([[user_id, { name: user.name, domain: user.domain }]]),
  };
}
