/** Short forms for scheduling policies and pods. */
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

/** The policy with a spec, as a mapping or as YAML. Throws if the schema refuses it. */
export function policy(name: string, spec: unknown): SchedulingPolicy {
  return schedulingPolicy(name, policySpecSchema.parse(typeof spec === 'string' ? parse(spec) : spec));
}

/** The path of an example in the proposal, by number. */
export function proposalFile(number: number): string {
  const start = `${String(number).padStart(2, '0')}-`;
  return join(PROPOSAL, readdirSync(PROPOSAL).find((file) => file.startsWith(start)) ?? start);
}

/** The policies of an example in the proposal; unnamed ones are `example`. */
export function proposalPolicies(number: number): SchedulingPolicy[] {
  return parseAllDocuments(readFileSync(proposalFile(number), 'utf8')).map((document) => {
    const { metadata, spec } = document.toJS() as { metadata?: { name: string }; spec: unknown };
    return policy(metadata?.name ?? 'example', spec);
  });
}

/** A pod with a spec, as a mapping or as YAML. */
export function pod(spec: unknown = {}): Pod {
  return parsePod({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'shop' },
    spec: typeof spec === 'string' ? parse(spec) : spec,
  });
}

/** Reviews a pod; adds defaults unless the options disable them. */
export function review(
  policies: readonly SchedulingPolicy[],
  reviewed: Pod,
  strategy: MergeStrategy = 'deep',
  options: Partial<ReviewOptions> = {},
): PodReview {
  return new EffectivePolicy(policies, strategy).review(reviewed, { addDefaults: true, ...options });
}

/** Reasons for refusing a pod, one line each; empty if it is allowed. */
export function reasonsOf({ reasons }: Pick<PodReview, 'reasons'>): string[] {
  return reasons.map(formatReason);
}

/** Policies `a`, `b` and `c` with these specs. */
export function policiesOf(...specs: unknown[]): SchedulingPolicy[] {
  return specs.map((spec, index) => policy('abc'.charAt(index), spec));
}

/** Reasons of policies with these specs for refusing a pod with this spec. */
export function reasonsFor(podSpec: unknown, ...specs: unknown[]): string[] {
  return reasonsOf(review(policiesOf(...specs), pod(podSpec)));
}
