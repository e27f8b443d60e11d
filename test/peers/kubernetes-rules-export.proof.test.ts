/** Kubernetes itself judges pods by exported rules as the webhook does. */
import { afterAll, describe, expect, it } from 'vitest';
import { PodRules } from '../../src/kubernetes/admission/pod-rules.ts';
import { rulesPolicy } from '../../src/kubernetes/export/pod-rules.ts';
import { podEnvironment } from '../../src/rules/pod/environment.ts';
import { readRules } from '../../src/rules/read-rules.ts';
import { temporaryFile } from '../support/files.ts';
import { type AskedRequest, admissionJudge } from './admission-judge.ts';

const judge = admissionJudge();
afterAll(() => judge?.remove());

const RULES = [
  'pod.labels.team == "a"',
  'pod.labels.?team.orValue("a") == "a"',
  'has(pod.labels.team) && pod.labels["team"] in ["a", "\'b\\\\"]',
  '"team" in pod.annotations || pod.labels.team != "a"',
  'user.name.startsWith("system:") || "admins" in user.groups',
  'pod.containers.all(c, c.image.startsWith("good/") || c.is_init)',
  'pod.containers.exists(c, c.is_init && c.name == "x")',
  'pod.containers.all(c, pod.containers.exists(d, d.image != c.image))',
  'pod.claims <= 1 && pod.namespace == "default"',
  'pod.service_account != "default" ? request.operation == "create" : request.kind == "Pod"',
  'pod.containers.all(c, c.image != "bad/x")',
];
const METADATA = [{}, { labels: { team: 'a' } }, { labels: { team: "'b\\" }, annotations: { team: '' } }];
const SPECS = [
  { containers: [{ name: 'a', image: 'good/a' }] },
  { containers: [{ name: 'a', image: '' }], resourceClaims: [{ name: 'a' }, { name: 'b' }] },
  {
    serviceAccountName: 'robot',
    initContainers: [{ name: 'x', image: 'bad/x' }],
    containers: [{ name: 'a', image: 'good/a' }],
    ephemeralContainers: [{ name: 'e', image: 'bad/e' }],
  },
];
const USERS = [
  { user: 'ada', groups: ['admins'] },
  { user: 'system:robot', groups: [] },
  { user: 'bob', groups: [] },
];

/** Each object by each user, created and updated, to an object or one of its subresources. */
function requestsFor(subresource?: string): AskedRequest[] {
  const pod = (metadata: object, spec: object) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    spec,
    metadata: { name: 'p', namespace: 'default', ...metadata },
  });
  const operations = subresource === undefined ? (['CREATE', 'UPDATE'] as const) : (['UPDATE'] as const);
  return METADATA.flatMap((metadata) =>
    SPECS.flatMap((spec) =>
      USERS.flatMap((user) =>
        operations.map(
          (operation): AskedRequest => ({
            ...user,
            operation,
            resource: 'pods',
            kind: 'Pod',
            namespace: 'default',
            ...(subresource !== undefined && { subresource }),
            object: pod(metadata, spec),
            oldObject: operation === 'CREATE' ? null : pod({}, SPECS[0] ?? {}),
          }),
        ),
      ),
    ),
  );
}

/** What the webhook refuses a request for: messages, or `expression` where a rule has no value. */
function refusalsOf(rules: PodRules, asked: AskedRequest): readonly string[] {
  const { user, groups, operation, object, oldObject } = asked;
  const request = {
    kind: 'pod',
    isUpdate: operation === 'UPDATE',
    namespace: 'default',
    username: user,
    groups,
    pod: object,
    current: oldObject ?? undefined,
  };
  try {
    return rules.judge(request as never, object as never).map(String);
  } catch {
    return ['expression'];
  }
}

function readPodRules(rules: readonly object[]) {
  const file = temporaryFile('rules.yaml', `${JSON.stringify({ rules })}\n`);
  const { rules: read, problems } = readRules(file, { pod: podEnvironment() });
  expect(problems).toEqual([]);
  return read.pod;
}

const OPTIONS = { name: 'x', exemptNamespaces: [], isTrial: false };

describe.skipIf(judge === undefined)('rules as ValidatingAdmissionPolicies', () => {
  it.concurrent.each(RULES.map((allow, index) => [allow, index] as const))(
    'are judged by Kubernetes as by the webhook: %s',
    async (allow, index) => {
      const match = index % 2 === 0 ? undefined : RULES[(index + 3) % RULES.length];
      const exempt = { users: index === 3 ? ['ada'] : [] };
      const rules = readPodRules([
        { name: 'one', on: 'pod', match, allow, exempt, message: "It's refused." },
      ]);
      const ours = new PodRules(rules);
      const requests = [undefined, 'ephemeralcontainers', 'resize'].flatMap((one) => requestsFor(one));
      const verdicts = (await judge?.judge(rulesPolicy(rules, OPTIONS), requests)) ?? [];
      const refused = requests.map((asked) => refusalsOf(ours, asked));
      expect(verdicts).toHaveLength(requests.length);
      for (const [at, { allowed, message }] of verdicts.entries()) {
        const [expected] = refused[at] ?? [];
        expect({ request: requests[at], allowed, message }).toMatchObject({
          allowed: expected === undefined,
          message: expect.stringContaining(
            expected === undefined ? '' : expected === 'expression' ? 'expression' : "It's refused.",
          ),
        });
      }
      expect(new Set(refused.map(({ length }) => length > 0))).toContain(true);
    },
  );

  it.concurrent('refuse together what one of them refuses', async () => {
    const rules = readPodRules(
      RULES.slice(1, 6).map((allow, index) => ({
        name: `rule-${index}`,
        on: 'pod',
        allow,
        message: `Refused by ${index}.`,
      })),
    );
    const ours = new PodRules(rules);
    const requests = requestsFor();
    const verdicts = (await judge?.judge(rulesPolicy(rules, OPTIONS), requests)) ?? [];
    expect(verdicts.map(({ allowed }) => allowed)).toEqual(
      requests.map((asked) => refusalsOf(ours, asked).length === 0),
    );
    expect(new Set(verdicts.map(({ allowed }) => allowed)).size).toBe(2);
  });
});
