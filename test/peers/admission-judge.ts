/** The admission plugin of Kubernetes itself, which judges requests by the ValidatingAdmissionPolicies of a file. */
import { spawn, spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { z } from 'zod';
import { peerProgram, skipAloud } from '../support/peers.ts';

/** The request. Without `user`: by somebody without groups. */
export interface AskedRequest {
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE';
  readonly resource: string;
  readonly kind: string;
  /** Default: the core group. */
  readonly group?: string;
  /** Default: `v1`. */
  readonly version?: string;
  readonly subresource?: string;
  readonly namespace: string;
  readonly user?: string;
  readonly groups?: readonly string[];
  readonly object: object | null;
  readonly oldObject?: object | null;
  /** To what the authorizer says yes: `verb/group/resource/name@user`. */
  readonly allowed?: readonly string[];
}

const VERDICT = z.object({
  id: z.string(),
  allowed: z.boolean(),
  message: z.string().default(''),
  warnings: z
    .array(z.string())
    .nullable()
    .transform((all) => all ?? []),
});
export type Verdict = z.infer<typeof VERDICT>;

export interface AdmissionJudge {
  /** A verdict for each request, in their order. Throws where the policies cannot be read. */
  judge(policies: readonly object[], requests: readonly AskedRequest[]): Promise<Verdict[]>;
  remove(): void;
}

/** How many run at once: each waits for two seconds. With more, a slow machine would not compile their policies in time. */
const AT_ONCE = 2;

/** Refused before all others. Where it is not, the plugin does not know its policies yet. */
const CANARY = 'canary';
const CANARIES: readonly object[] = [
  {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name: CANARY },
    spec: {
      failurePolicy: 'Fail',
      matchConstraints: {
        resourceRules: [
          { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] },
        ],
      },
      validations: [{ expression: 'false', message: CANARY }],
    },
  },
  bindingIn(CANARY, CANARY),
];

/** Binds a policy in one namespace only. */
export function bindingIn(policyName: string, namespace: string, actions: readonly string[] = ['Deny']) {
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name: policyName },
    spec: {
      policyName,
      validationActions: actions,
      matchResources: {
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
      },
    },
  };
}

/** `undefined` = it is not here, which is said aloud. */
export function admissionJudge(): AdmissionJudge | undefined {
  const packed = peerProgram('KUBERNETES_ADMISSION_PEER');
  if (packed === undefined) {
    return undefined;
  }
  const folder = mkdtempSync(join(tmpdir(), 'blazar-enforcement-judge-'));
  const program = join(folder, 'judge');
  const remove = () => rmSync(folder, { recursive: true, force: true });
  const file = openSync(program, 'w', 0o755);
  const unpacked = spawnSync('xz', ['--decompress', '--stdout', packed], { stdio: ['ignore', file, 'pipe'] });
  closeSync(file);
  if (unpacked.status !== 0) {
    const why = unpacked.error?.message ?? String(unpacked.stderr).trim();
    skipAloud('KUBERNETES_ADMISSION_PEER', `${packed} cannot be unpacked: ${why}`);
    remove();
    return undefined;
  }
  let runs = 0;
  /** Empty if the plugin has not read its policies within the ten seconds that it waits for them. */
  const run = async (policies: readonly object[], requests: readonly AskedRequest[]): Promise<Verdict[]> => {
    const path = join(folder, `policies-${runs++}.yaml`);
    writeFileSync(path, [...CANARIES, ...policies].map((one) => `${JSON.stringify(one)}\n`).join('---\n'));
    // Short-lived: collecting garbage seldom leaves it more of a slow machine.
    const child = spawn(program, [path], { stdio: 'pipe', env: { ...process.env, GOGC: '400' } });
    const status = new Promise((resolve, reject) => child.once('error', reject).once('close', resolve));
    const asked = [CANARY_REQUEST, ...requests].map((one, index) =>
      JSON.stringify({ version: 'v1', user: 'somebody', ...one, id: String(index) }),
    );
    child.stdin.on('error', () => undefined).end(asked.join('\n'));
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
    if ((await status) !== 0) {
      if (stderr.endsWith('not ready\n')) {
        return [];
      }
      throw new Error(stderr);
    }
    return stdout
      .trim()
      .split('\n')
      .map((line) => VERDICT.parse(JSON.parse(line)));
  };
  const tried = async (...asked: Parameters<typeof run>): Promise<Verdict[] | undefined> => {
    const [canary, ...verdicts] = await run(...asked);
    return canary?.allowed === false ? verdicts : undefined;
  };
  /** Of those that were not ready in time, one at a time: a machine that is busy with other things has time for it later. */
  let late: Promise<unknown> = Promise.resolve();
  const triedLater = async (...asked: Parameters<typeof run>): Promise<Verdict[]> => {
    for (;;) {
      const verdicts = await tried(...asked);
      if (verdicts !== undefined) {
        return verdicts;
      }
    }
  };
  const judge = async (...asked: Parameters<typeof run>): Promise<Verdict[]> => {
    const verdicts = await tried(...asked);
    if (verdicts !== undefined) {
      return verdicts;
    }
    const again = late.then(() => triedLater(...asked));
    late = again.catch(() => undefined);
    return again;
  };
  const running = new Set<Promise<unknown>>();
  return {
    remove,
    judge: async (policies, requests) => {
      while (running.size >= AT_ONCE) {
        await Promise.race(running);
      }
      const judging = judge(policies, requests);
      const ended = judging.catch(() => undefined).finally(() => running.delete(ended));
      running.add(ended);
      return judging;
    },
  };
}

const CANARY_REQUEST: AskedRequest = {
  operation: 'CREATE',
  resource: 'pods',
  kind: 'Pod',
  namespace: CANARY,
  object: { metadata: { name: CANARY }, spec: { containers: [] } },
};
