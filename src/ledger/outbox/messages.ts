/** The lease of a message. */
import { hash } from 'node:crypto';
import type { EndMessage } from '../../filter/outbox.ts';
import type { Call } from '../../filter/verdict.ts';
import { identityOf, kept } from '../identity.ts';
import type { LeaseRow } from '../storage/schema.ts';
import { type NewMessage, UNCLAIMED } from './statements.ts';

/**
 * Equal for messages about the same lease: by its id, or, while it has none, by the repetition of its
 * request. Any other lease without an id counts as a separate lease. Has a fixed length, for an index.
 */
export function leaseOf({ context, lease }: EndMessage, call: Call, key: string): string {
  const { leaseId, region, projectId } = identityOf(context, [lease, lease]);
  const { repetition } = call;
  const identity =
    leaseId !== null
      ? ['id', region, projectId, leaseId]
      : repetition !== undefined
        ? ['repetition', region, projectId, repetition.key, repetition.content]
        : ['message', key];
  return digestOf(identity);
}

/** The possible values of `leaseOf` in messages about a recorded lease. */
export function leaseDigests(
  row: Pick<LeaseRow, 'lease_id' | 'region' | 'project_id' | 'repetition_key' | 'repetition_content'>,
): string[] {
  const { lease_id, region, project_id, repetition_key, repetition_content } = row;
  return [
    ...(lease_id === null ? [] : [digestOf(['id', region, project_id, lease_id])]),
    ...(repetition_key === null || repetition_content === null
      ? []
      : [digestOf(['repetition', region, project_id, repetition_key, repetition_content])]),
  ];
}

function digestOf(identity: readonly string[]): string {
  return hash('sha256', JSON.stringify(identity), 'base64url');
}

/** OpenStack's own ids are shorter. */
const LONGEST = 255;

/** For lists, in a form that every database stores. */
export function shownIdentity({ context, lease }: EndMessage): {
  project_id: string;
  lease_id: string | null;
} {
  const { leaseId, projectId } = identityOf(context, [lease, lease]);
  return { project_id: shown(projectId), lease_id: leaseId === null ? null : shown(leaseId) };
}

function shown(text: string): string {
  return kept(text.slice(0, LONGEST));
}

/** Outbox senders of webhook and mail. No filter has these names. */
export const NOTICES = 'notifications';
export const MAIL_NOTICES = 'notifications-mail';

export interface Notice {
  /** The subject: notices with equal subjects are delivered in the order of writing. */
  readonly about: readonly string[];
  /** For lists; empty = no single project. */
  readonly projectId: string;
  /** Unique among notices. */
  readonly key: string;
  readonly body: string;
}

/**
 * Value of the column that keeps the order. Differs from those of leases and of other senders: a failing
 * sender must not delay others.
 */
export function orderOf(about: readonly string[], sender: string): string {
  return hash('sha256', JSON.stringify([sender === NOTICES ? 'notice' : sender, ...about]), 'base64url');
}

/** The key of the message to one sender. */
export function messageKey(key: string, sender: string): string {
  return sender === NOTICES ? key : `${key}/${sender}`;
}

/** One message for each sender. */
export function messagesOf(
  { about, projectId, key, body }: Notice,
  senders: readonly string[],
): NewMessage[] {
  return senders.map((sender) => ({
    sender,
    lease: orderOf(about, sender),
    project_id: projectId,
    lease_id: null,
    key: messageKey(key, sender),
    body,
    ...UNCLAIMED,
  }));
}
