/** Who may use which policy: the answers that the suite holds us against are those of a real API server. */
import { describe, expect, it } from 'vitest';
import { ANSWERS, OBJECTS, QUESTIONS } from '../support/access-questions.ts';
import { accessInForce, askedAccess } from './asked-access.ts';
import { namespace } from './cluster-objects.ts';
import { clusterOfFile } from './cluster-of-file.ts';

const { cluster } = clusterOfFile();

describe.skipIf(cluster === undefined)('beside a real API server', () => {
  it('SubjectAccessReviews answer as the fixture says', async () => {
    if (cluster === undefined) {
      return;
    }
    const namespaces = new Set(QUESTIONS.flatMap(({ namespace }) => namespace ?? []));
    await cluster.apply([...namespaces].map((name) => namespace(name)));
    await cluster.apply(OBJECTS);
    // Where it says something else, the comparison below shows what, or records it.
    await accessInForce(cluster).catch(() => undefined);
    const answers = await askedAccess(cluster);
    // `npx vitest run --project proofs test/peers/kubernetes-access --update` records them anew.
    await expect(`${JSON.stringify(answers, null, 2)}\n`).toMatchFileSnapshot(ANSWERS);
  });
});
