/** Scheduling policies at the door of a cluster, whose own schema can refuse no unknown field. */
import { formatPath, isMapping } from '../yaml/tree.ts';
import { policyDocument } from './documents.ts';
import { mistakes } from './mistakes.ts';

/** More would not fit into a message. */
const MAX_MISTAKES = 20;
const MAX_MESSAGE = 2000;

/** Why a policy would not be read, for the user; `null` where it would be. */
export function policyMistake(document: unknown): string | null {
  const parsed = policyDocument.safeParse(document);
  if (parsed.success) {
    return null;
  }
  const value = isMapping(document) ? document : {};
  const found = parsed.error.issues
    .flatMap((issue) => [...mistakes(issue, value)])
    .slice(0, MAX_MISTAKES)
    .map(({ path, message }) => (path.length === 0 ? message : `${formatPath(path)}: ${message}`));
  return `the scheduling policy can not be used: ${found.join('; ')}`.slice(0, MAX_MESSAGE);
}
