/** Scheduling policies, and pods to judge by them, in few words. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { policySpecSchema } from '../../src/kubernetes/policies/documents/policy-schema.ts';
import {
  EffectivePolicy,
  type PodReview,
  type ReviewOptions,
} from '../../src/kubernetes/policies/effective-policy.ts';
import type { MergeStrategy } from '../../src/kubernetes/policies/merge.ts';
import { type Pod, parsePod } from '../../src/kubernetes/policies/pod.ts';
import { type SchedulingPolicy, schedulingPolicy } from '../../src/kubernetes/policies/policy.ts';
import { formatReason } from '../../src/kubernetes/policies/rules/reason.ts';
import { projectFile } from './files.ts';

const PROPOSAL = projectFile('test/fixtures/kubernetes/proposal');

/** The policy with a spec, which is a mapping or the YAML of one. Throws where the schema refuses it. */
export function policy(name: string, spec: unknown): SchedulingPolicy {
  return schedulingPolicy(name, policySpecSchema.parse(typeof spec === 'string' ? parse(spec) : spec));
}

/** The path of an example of the proposal, by its number. */
export function proposalFile(number: number): string {
  const start = `${String(number).padStart(2, '0')}-`;
  return join(PROPOSAL, readdirSync(PROPOSAL).find((file) => file.startsWith(start)) ?? start);
}

/** The policies of an example of the proposal; those without a name are `example`. */
export function proposalPolicies(number: number): SchedulingPolicy[] {
  return parseAllDocuments(readFileSync(proposalFile(number), 'utf8')).map((document) => {
    const { metadata, spec } = document.toJS() as { metadata?: { name: string }; spec: unknown };
    return policy(metadata?.name ?? 'example', spec);
  });
}

/** A pod with a spec, which is a mapping or the YAML of one. */
export function pod(spec: unknown = {}): Pod {
  return parsePod({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'shop' },
    spec: typeof spec === 'string' ? parse(spec) : spec,
  });
}

/** Judges a pod by policies; defaults are added unless the options say otherwise. */
export function review(
  policies: readonly SchedulingPolicy[],
  reviewed: Pod,
  strategy: MergeStrategy = 'deep',
  options: Partial<ReviewOptions> = {},
): PodReview {
  return new EffectivePolicy(policies, strategy).review(reviewed, { addDefaults: true, ...options });
}

/** Why a pod is refused, a line for each reason; none where it is allowed. */
export function reasonsOf({ reasons }: Pick<PodReview, 'reasons'>): string[] {
  return reasons.map(formatReason);
}

/** Policies `a`, `b` and `c` with these specs. */
export function policiesOf(...specs: unknown[]): SchedulingPolicy[] {
  return specs.map((spec, index) => policy('abc'.charAt(index), spec));
}

/** Why a pod with this spec is refused by policies with these specs. */
export function reasonsFor(podSpec: unknown, ...specs: unknown[]): string[] {
  return reasonsOf(review(policiesOf(...specs), pod(podSpec)));
}
