/** Reviews scheduling policies when they are stored: the schema in the cluster cannot reject unknown fields. */
import { isDeepStrictEqual } from 'node:util';
import { formatPath, isMapping } from '../../../base/yaml/tree.ts';
import { message, warning } from '../../admission/admission-messages.ts';
import type { Admission, PolicyRequest } from '../../admission/admission-review.ts';
import { policyDocument } from './documents.ts';
import { schemaProblems } from './policy-schema.ts';

/** Keeps messages within `MAX_MESSAGE`. */
const MAX_MISTAKES = 20;

/**
 * Refuses an invalid policy. The metadata of one that was stored before the webhook existed may still change,
 * with a warning: otherwise it could not lose its finalizers.
 */
export function reviewPolicy({ document, current }: Pick<PolicyRequest, 'document' | 'current'>): Admission {
  const mistake = policyMistake(document) ?? kindTwice(document);
  const admission = { allowed: true, message: null, patch: [], warnings: [] };
  if (mistake === null) {
    return admission;
  }
  return current !== undefined && isDeepStrictEqual(content(document), content(current))
    ? { ...admission, warnings: [warning(mistake)] }
    : { ...admission, allowed: false, message: mistake };
}

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
  return message(`the scheduling policy is invalid: ${found.join('; ')}`);
}

/** The draft writes `Kind`. Files may have it instead of `kind`, which the API server requires. */
function kindTwice(document: unknown): string | null {
  return isMapping(document) && 'Kind' in document
    ? 'the scheduling policy is invalid: Kind: expected nothing, because kind is set too'
    : null;
}

function content(document: unknown): unknown {
  if (!isMapping(document)) {
    return document;
  }
  const { metadata, status, ...read } = document;
  return read;
}
