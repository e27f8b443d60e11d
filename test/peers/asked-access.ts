/** What a real API server answers to the questions of access-questions.ts. */
import { readFileSync } from 'node:fs';
import { expect, vi } from 'vitest';
import { ANSWERS, type Answers, GROUPS, POLICY_NAMES, QUESTIONS } from '../support/access-questions.ts';
import type { Cluster } from './kubernetes.ts';

/** Controllers write the rules of aggregated roles one after the other, and the API server learns of roles and bindings a moment later. */
const SETTLED = { timeout: 120_000, interval: 1000 };

export async function askedAccess(cluster: Cluster): Promise<Answers> {
  const reviews = QUESTIONS.flatMap(({ user, groups, namespace }) =>
    GROUPS.flatMap((group) =>
      POLICY_NAMES.map((name) => ({
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SubjectAccessReview',
        spec: {
          user,
          groups,
          resourceAttributes: { verb: 'use', group, resource: 'schedulingpolicies', name, namespace },
        },
      })),
    ),
  );
  const stdin = reviews.map((review) => JSON.stringify(review)).join('\n');
  const created = await cluster.kubectl(['create', '-f', '-', '-o', 'json'], { stdin });
  expect(created.stderr).toBe('');
  const allowed = reviewsIn(created.stdout).map(({ status }) => status.allowed);
  expect(allowed).toHaveLength(reviews.length);
  return {
    server: 'kube-apiserver 1.20.2',
    answers: QUESTIONS.map((question, index) => ({
      ...question,
      usable: Object.fromEntries(
        GROUPS.map((group, at) => [
          group,
          POLICY_NAMES.filter(
            (_, name) => allowed[(index * GROUPS.length + at) * POLICY_NAMES.length + name],
          ),
        ]),
      ),
    })),
  };
}

/** Waits until `OBJECTS`, which have been applied, are in force: as the fixture says. */
export async function accessInForce(cluster: Cluster): Promise<void> {
  const recorded = JSON.parse(readFileSync(ANSWERS, 'utf8')) as Answers;
  // Also called before tests, where nothing can be polled.
  await vi.waitFor(
    async () => expect(JSON.parse(JSON.stringify(await askedAccess(cluster)))).toEqual(recorded),
    SETTLED,
  );
}

/** kubectl prints one object after the other. */
function reviewsIn(text: string): { status: { allowed: boolean } }[] {
  return JSON.parse(`[${text.trim().replaceAll(/^\}\n\{/gm, '},{')}]`);
}
