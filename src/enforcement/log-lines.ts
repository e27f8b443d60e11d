/** The lines that the chain logs about filters: each names the filter and the request. */
import { errorText } from '../errors.ts';
import type { Decision, Outcome } from '../filter/verdict.ts';
import type { Context, Lease } from '../lease/lease.ts';
import type { Logger } from '../logger.ts';
import { auditWarning, isTried, ruleWarnings } from './decision.ts';

/** The request that a line is about. */
export interface LoggedRequest {
  readonly operation: Decision['operation'] | 'end';
  readonly context: Context;
  readonly requestId: string | undefined;
  readonly lease: Lease;
  /** Of an update: the lease before it. */
  readonly currentLease?: Lease;
}

export function logFailure(logger: Logger, filter: string, request: LoggedRequest, thrown: unknown): void {
  logger.error({ ...fieldsOf(filter, request), error: errorText(thrown) }, 'filter failed');
  if (thrown instanceof Error) {
    logger.debug({ filter, stack: thrown.stack }, 'filter failed');
  }
}

/** Logs what an audited filter, or a rule in audit mode, would have done. Logs nothing for what is enforced, and nothing if it allowed the lease. */
export function logAudit(logger: Logger, request: LoggedRequest, outcome: Outcome): void {
  if (!isTried(outcome)) {
    return;
  }
  for (const warning of [...auditWarning(outcome), ...ruleWarnings(outcome)]) {
    logger.warn(fieldsOf(outcome.filter, request), warning);
  }
}

/** In characters. Names in Blazar have at most 80. */
const MAX_LOGGED_NAME = 255;

function fieldsOf(filter: string, { operation, context, requestId, lease, currentLease }: LoggedRequest) {
  const { project_id, user_id } = context;
  return {
    ...(requestId === undefined ? {} : { request_id: requestId }),
    ...{ operation, filter, project_id, user_id },
    ...textField('lease_id', lease.id ?? currentLease?.id),
    ...textField('lease_name', lease.name ?? currentLease?.name),
  };
}

/** A field if the value is a text: a new lease has no id, and its name may be anything. */
function textField(name: string, value: unknown): Readonly<Record<string, string>> {
  return typeof value === 'string' ? { [name]: value.slice(0, MAX_LOGGED_NAME) } : {};
}
