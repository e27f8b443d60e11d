/** Messages of the ledger and the service about what has happened, for the receiver in `[notifications]`. */
import { hash } from 'node:crypto';
import { type NewMessage, UNCLAIMED } from './statements.ts';

/** The sender in the outbox. No filter is called so. */
export const NOTICES = 'notifications';

export interface Notice {
  /** What it is about: notices with equal ones are delivered in the order of writing. */
  readonly about: readonly string[];
  /** For lists; empty = it is about no single project. */
  readonly projectId: string;
  /** Unlike that of any other notice. */
  readonly key: string;
  readonly body: string;
}

/** The column that keeps the order. Never equal to that of a lease. */
export function orderOf(about: readonly string[]): string {
  return hash('sha256', JSON.stringify(['notice', ...about]), 'base64url');
}

export function messageOf({ about, projectId, key, body }: Notice): NewMessage {
  return {
    sender: NOTICES,
    lease: orderOf(about),
    project_id: projectId,
    lease_id: null,
    key,
    body,
    ...UNCLAIMED,
  };
}
