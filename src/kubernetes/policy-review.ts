/** Reviews scheduling policies when they are stored: the schema in the cluster cannot reject unknown fields. */
import { formatPath, isMapping } from '../yaml/tree.ts';
import { policyDocument } from './documents.ts';
import { schemaProblems } from './schema-problems.ts';

/** Keeps messages within `MAX_MESSAGE`. */
const MAX_MISTAKES = 20;
const MAX_MESSAGE = 2000;

/** Why a policy is invalid, for the user; `null` if it is valid. */
export function policyMistake(document: unknown): string | null {
  const parsed = policyDocument.safeParse(document);
  if (parsed.success) {
    return null;
  }
  const value = isMapping(document) ? document : {};
  const found = parsed.error.issues
    .flatMap((issue) => [...schemaProblems(issue, value)])
    .slice(0, MAX_MISTAKES)
    .map(({ path, message }) => (path.length === 0 ? message : `${formatPath(path)}: ${message}`));
  return `the scheduling policy is invalid: ${found.join('; ')}`.slice(0, MAX_MESSAGE);
}
