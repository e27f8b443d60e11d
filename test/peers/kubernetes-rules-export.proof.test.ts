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
];

describe.skipIf(judge === undefined)('rules as ValidatingAdmissionPolicies', () => {
  it('are judged by Kubernetes as by the webhook', async () => {
    for (const [index, allow] of RULES.entries()) {
      const match = index % 2 === 0 ? undefined : RULES[(index + 3) % RULES.length];
      const rule = {
        name: 'one',
        on: 'pod',
        match,
        allow,
        message: "It's refused.",
        exempt: { users: index === 3 ? ['ada'] : [] },
      };
      const file = temporaryFile(`rules-${index}.yaml`, `${JSON.stringify({ rules: [rule] })}\n`);
      const { rules, problems } = readRules(file, { pod: podEnvironment() });
      expect(problems).toEqual([]);
      const policies = rulesPolicy(rules.pod, { name: 'x', exemptNamespaces: [], isTrial: false });
      const requests = METADATA.flatMap((metadata) =>
        SPECS.flatMap((spec) =>
          USERS.flatMap((user) =>
            (['CREATE', 'UPDATE'] as const).map(
              (operation): AskedRequest => ({
                ...user,
                operation,
                resource: 'pods',
                kind: 'Pod',
                namespace: 'default',
                object: {
                  apiVersion: 'v1',
                  kind: 'Pod',
                  metadata: { name: 'p', namespace: 'default', ...metadata },
                  spec,
                },
                oldObject:
                  operation === 'CREATE'
                    ? null
                    : {
                        apiVersion: 'v1',
                        kind: 'Pod',
                        metadata: { name: 'p', namespace: 'default' },
                        spec: SPECS[0],
                      },
              }),
            ),
          ),
        ),
      );
      const verdicts = (await judge?.judge(policies, requests)) ?? [];
      const ours = new PodRules(rules.pod);
      for (const [at, { user, groups, operation, object, oldObject }] of requests.entries()) {
        let expected: string | undefined;
        try {
          const said = ours.judge(
            {
              kind: 'pod',
              isUpdate: operation === 'UPDATE',
              namespace: 'default',
              username: user,
              groups,
              pod: object,
              current: oldObject ?? undefined,
            } as never,
            object as never,
          );
          expected = said[0] === undefined ? undefined : "It's refused.";
        } catch {
          expected = 'expression';
        }
        const { allowed, message } = verdicts[at] ?? {};
        expect({ allow, match, object, user, operation, allowed, message }).toMatchObject({
          allowed: expected === undefined,
          message: expect.stringContaining(expected ?? ''),
        });
      }
    }
  });
});
