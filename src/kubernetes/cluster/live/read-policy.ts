/** Reads a scheduling policy in the API server's form. */
import { createHash } from 'node:crypto';
import { errorText } from '../../../base/errors.ts';
import { depthMistake, formatPath } from '../../../base/yaml/tree.ts';
import { RESOURCE } from '../../policies/access.ts';
import { policyDocument, policyMistake } from '../../policies/documents/documents.ts';
import { pathTo } from '../../policies/documents/items.ts';
import { CLUSTER_GROUP, type SchedulingPolicy, schedulingPolicy } from '../../policies/policy.ts';
import type { ApiObject } from '../api/contract.ts';

export const POLICIES_PATH = `/apis/${CLUSTER_GROUP}/v1alpha1/${RESOURCE}`;

type ReadPolicy =
  | { readonly policy: SchedulingPolicy; readonly mistake?: undefined }
  /** What is wrong, without the name of the policy. */
  | { readonly mistake: string; readonly policy?: undefined };

/** Never throws: unreadable policies are invalid. */
export function readPolicy(object: ApiObject): ReadPolicy {
  try {
    const { status: _, ...document }: ApiObject & { readonly status?: unknown; readonly spec?: unknown } =
      object;
    const tooDeep = depthMistake(document);
    if (tooDeep !== undefined) {
      return { mistake: tooDeep };
    }
    const hostile = pathTo('__proto__', document.spec);
    if (hostile !== undefined) {
      return { mistake: `${formatPath(['spec', ...hostile])}: this key is not allowed` };
    }
    const parsed = policyDocument.safeParse(document);
    if (!parsed.success) {
      return { mistake: policyMistake(document) || 'it cannot be read' };
    }
    return { policy: schedulingPolicy(object.metadata.name, parsed.data.spec, CLUSTER_GROUP) };
  } catch (thrown) {
    return { mistake: `it cannot be read (${errorText(thrown)})` };
  }
}

/** The same for two objects only if their content is, whatever their metadata and status. `undefined` = unknown. */
export function contentDigest(object: ApiObject): string | undefined {
  const { metadata, status, ...content }: ApiObject & { readonly status?: unknown } = object;
  try {
    return createHash('sha256').update(JSON.stringify(content)).digest('base64');
  } catch {
    // Nested deeper than the stack.
    return undefined;
  }
}
