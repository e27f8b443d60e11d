/** Measures the admission webhook's pod reviews per second, and whether unused policies cost anything. */
import { admissionAnswer, parseAdmissionReview } from '../src/kubernetes/admission/admission-review.ts';
import { accountOf, PodAdmission } from '../src/kubernetes/admission/pod-admission.ts';
import type { PolicySource } from '../src/kubernetes/policies/access.ts';
import { SchedulingPolicies } from '../src/kubernetes/policies/scheduling-policies.ts';
import { ADMISSION_PATH, clusterDocuments, policyDocuments, reviewTexts, USED } from './admission-reviews.ts';
import { amount } from './harness/amount.ts';
import { processorOf, type Subject, type Suite } from './harness/suite.ts';
import { reviewedSource } from './reviewed-source.ts';
import type { ServerKind } from './server-process.ts';
import { server } from './service.ts';

const BATCH = amount(4000, 64);

function reviews(kind: ServerKind): Promise<Subject> {
  return server(kind, BATCH, { path: ADMISSION_PATH, bodies: reviewTexts() });
}

/** Without HTTP: from parsed body to response. `others`: number of policies that the accounts may not use. */
function judging(others: number): Subject {
  const documents = policyDocuments(clusterDocuments({ ...USED, others }));
  const source = new SchedulingPolicies(documents);
  const admission = new PodAdmission(source);
  const bodies = reviewTexts().map((text) => JSON.parse(text) as unknown);
  const judge = (body: unknown) => {
    const request = parseAdmissionReview(body);
    if (request.pod === undefined) {
      throw new Error('expected a pod');
    }
    const decided = admission.review(request, source.policiesOf(accountOf(request)), { addDefaults: true });
    if (!decided.allowed) {
      throw new Error(decided.message ?? '');
    }
    return admissionAnswer(request.uid, decided);
  };
  return {
    operations: BATCH,
    batch() {
      let length = 0;
      for (let count = 0; count < BATCH; count += 1) {
        length += judge(bodies[count % bodies.length]).kind.length;
      }
      return length;
    },
  };
}

/** Like the service, without HTTP. */
async function admitting(source: PolicySource): Promise<Subject> {
  const admission = new PodAdmission(source);
  const bodies = reviewTexts().map((text) => JSON.parse(text) as unknown);
  const admit = async (body: unknown) => {
    const request = parseAdmissionReview(body);
    if (request.pod === undefined) {
      throw new Error('expected a pod');
    }
    const decided = await admission.admit(request, { addDefaults: true });
    if (!decided.allowed) {
      throw new Error(decided.message ?? '');
    }
    return admissionAnswer(request.uid, decided);
  };
  // Reviews are cached from now on.
  await Promise.all(bodies.map(admit));
  return {
    operations: BATCH,
    async batch() {
      let length = 0;
      for (let count = 0; count < BATCH; count += 1) {
        length += (await admit(bodies[count % bodies.length])).kind.length;
      }
      return length;
    },
  };
}

const BARE = 'node:http, reviews' satisfies ServerKind;
const SERVICE = 'service, reviews' satisfies ServerKind;
const LIVE = 'service, live reviews' satisfies ServerKind;
const DOCUMENTS = clusterDocuments(USED);

export const suite: Suite = {
  name: 'admission',
  file: import.meta.url,
  rounds: 7,
  turnMilliseconds: 700,
  subjects: {
    [BARE]: () => reviews(BARE),
    [SERVICE]: () => reviews(SERVICE),
    [LIVE]: () => reviews(LIVE),
    'policies of files': () => admitting(new SchedulingPolicies(policyDocuments(DOCUMENTS))),
    'policies of a cluster': () => admitting(reviewedSource(DOCUMENTS)),
    '10 policies of others': async () => judging(10),
    '10,000 policies of others': async () => judging(10_000),
  },
  comparisons: [
    { name: 'requests', measured: SERVICE, comparedWith: BARE, of: 'rate', target: { atLeast: 0.6 } },
    {
      name: 'requests, by its processor',
      measured: processorOf(SERVICE),
      comparedWith: processorOf(BARE),
      of: 'rate',
    },
    {
      name: 'requests, policies of a cluster',
      measured: LIVE,
      comparedWith: SERVICE,
      of: 'time',
      target: { atMost: 1.15 },
    },
    {
      name: 'policies of a cluster',
      measured: 'policies of a cluster',
      comparedWith: 'policies of files',
      of: 'time',
      target: { atMost: 1.15 },
    },
    {
      name: 'policies of others',
      measured: '10,000 policies of others',
      comparedWith: '10 policies of others',
      of: 'time',
      target: { atMost: 1.2 },
    },
  ],
  notes: [
    'POST /kubernetes/admission with a pod as an API server sends it, from 64 service accounts. The service has 50 policies and 200 bindings, two for each account, and logs its decisions; node:http reads and parses the body and responds with a review that allows.',
    'Policies of a cluster are those same ones, followed in a small API server in the process of the service. It answers reviews, which are cached, and asked again every 7 to 10 seconds. Without HTTP: from the parsed review to the response.',
    'Unused policies are measured without HTTP: from the parsed review to the response, with 10 and 10,000 policies that the accounts may not use.',
  ],
};
