/** Texts of policies, for the user and for the log: without secrets, and bounded. */
import type { Logger } from '../../logger.ts';
import { visibleLines } from '../../visible-text.ts';
import type { State } from '../review.ts';
import { SecretValues } from '../secrets.ts';
import type { ReceivedRequest } from '../wire.ts';
import { causeText, stackText } from './thrown.ts';

/** Maximum length of a text that is searched for secrets, in characters. */
const MAX_SEARCHED = 16_000;
/** What is dropped at the end of a longer text: there may be a part of a secret, which is not recognized. */
const DROPPED = 4000;
/** Maximum length of a reason that a user reads, and of a cause in the log, in characters. */
const MAX_SHOWN = 8000;

/** Removes secrets from a text. */
export type Hide = (text: string) => string;

/** Hides secrets in a policy's texts: those of the request and those that policies added. Collects them when first called. */
export function hiding({ task, skypilotConfig }: State, request: ReceivedRequest): Hide {
  let secrets: SecretValues | undefined;
  return (text) => {
    secrets ??= SecretValues.of(request.task.value, request.skypilotConfig.value, task, skypilotConfig);
    const hidden = secrets.hideIn(text.slice(0, MAX_SEARCHED));
    return text.length > MAX_SEARCHED ? `${hidden.slice(0, Math.max(0, hidden.length - DROPPED))}…` : hidden;
  };
}

/** What the user reads: without secrets, and without characters that control a terminal. */
export function shownReason(policy: string, rejected: string, hide: Hide): string {
  const text = visibleLines(hide(rejected).replace(/\r\n?/g, '\n'));
  if (text.trim() === '') {
    return `${policy} rejected the request and gave no reason.`;
  }
  return cut(text);
}

/** Logs the cause with its own causes and their stacks. */
export function logFailure(
  logger: Logger,
  fields: { readonly request_id?: string; readonly policy: string | null },
  thrown: unknown,
  hide: Hide,
): void {
  const stack = stackText(thrown);
  logger.error(
    { ...fields, error: cut(hide(causeText(thrown))), ...(stack !== undefined && { stack: hide(stack) }) },
    'policy failed',
  );
}

function cut(text: string): string {
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}
