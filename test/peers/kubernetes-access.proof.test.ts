/** Who may use which policy: the answers that the suite holds us against are those of a real API server. */
import { afterAll, describe, expect, it } from 'vitest';
import {
  ANSWERS,
  type Answers,
  GROUPS,
  OBJECTS,
  POLICY_NAMES,
  QUESTIONS,
} from '../support/access-questions.ts';
import { startCluster } from './kubernetes.ts';

const cluster = startCluster();
afterAll(() => cluster?.stop());

/** The controllers write the rules of aggregated roles one after the other. */
const SETTLED = { timeout: 30_000, interval: 1000 };

describe.skipIf(cluster === undefined)('beside a real API server', () => {
  it('SubjectAccessReviews answer as the fixture says', async () => {
    if (cluster === undefined) {
      return;
    }
    const namespaces = new Set(QUESTIONS.flatMap(({ namespace }) => namespace ?? []));
    await cluster.apply(
      [...namespaces].map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })),
    );
    await cluster.apply(OBJECTS);
    await expect
      .poll(
        async () => JSON.stringify(await cluster.get('get', 'clusterrole', 'of-aggregate', 'other-circle')),
        SETTLED,
      )
      .toMatch(/"gold".*"gold"/);
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
    const answers: Answers = {
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
    // `npx vitest run --project proofs test/peers/kubernetes-access --update` records them anew.
    await expect(`${JSON.stringify(answers, null, 2)}\n`).toMatchFileSnapshot(ANSWERS);
  });
});

/** kubectl prints one object after the other. */
function reviewsIn(text: string): { status: { allowed: boolean } }[] {
  return JSON.parse(`[${text.trim().replaceAll(/^\}\n\{/gm, '},{')}]`);
}
