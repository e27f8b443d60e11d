import { expect } from 'vitest';
import { formatProblem } from '../../src/base/errors.ts';
import type { Configuration } from '../../src/enforcement/configuration.ts';
import type { EnforcementServices } from '../../src/enforcement/services.ts';
import type { Review } from '../../src/skypilot/policies/policy-chain.ts';
import type { RequestOptions, User } from '../../src/skypilot/request/user-request.ts';
import { decodeRequest, encodeRequest, encodeTexts } from '../../src/skypilot/request/wire.ts';
import { rejectedWith, UNCHANGED } from '../support/decisions.ts';
import type { RecordingLogger } from '../support/logger.ts';
import { chainOn, inside, type RunningChain, readSkypilot } from '../support/skypilot.ts';

/** A request as a test writes it: what is left out is as in a launch at the server's side. */
export interface Asked {
  readonly task?: string;
  readonly config?: string;
  readonly name?: string;
  readonly options?: Partial<RequestOptions> | null;
  readonly atClientSide?: boolean;
  readonly user?: User | null;
  readonly clientApiVersion?: number | null;
  readonly clientVersion?: string | null;
}

/** The answer of a chain, with the two texts that SkyPilot gets where it is allowed. */
interface Answered extends Review {
  readonly task_: string;
  readonly config: string;
}

export const TASK = `name: train
resources:
  infra: aws
num_nodes: 1
setup: |
  pip install torch
run: python train.py
_user_specified_yaml: "name: train\\nrun: python train.py\\n"
`;

export const LEE: User = { id: 'a1b2c3d4', name: 'lee', userType: null, preferredWorkspace: null };

/** The configuration of `[skypilot]` with included policies. */
export function configured(
  policies: readonly string[],
  options: Readonly<Record<string, unknown>> = {},
): Promise<Configuration> {
  return readSkypilot({ isolation: 'none', admin_policies: policies, ...options });
}

/** What is wrong with options of a policy, a sentence each. */
export async function problemsOf(
  policy: string,
  options: Readonly<Record<string, unknown>>,
): Promise<string[]> {
  const { problems } = await configured([policy], options);
  return problems.filter(({ section }) => section === 'skypilot').map(formatProblem);
}

/** A chain of included policies that is closed after the test. */
export async function chainOf(
  policies: readonly string[],
  options: Readonly<Record<string, unknown>> = {},
  services: EnforcementServices = {},
): Promise<{ ask: (asked?: Asked) => Promise<Answered>; logger: RecordingLogger }> {
  const skypilot = { admin_policies: policies, config_validation: 'warning', ...options };
  const { review, logger } = await chainOn(skypilot, services);
  return { ask: (asked = {}) => answered(review, asked), logger };
}

async function answered(reviewed: RunningChain['review'], asked: Asked): Promise<Answered> {
  const { options = {}, user = asked.atClientSide ? null : LEE } = asked;
  const body = encodeRequest({
    task: asked.task ?? TASK,
    skypilotConfig: asked.config ?? '{}\n',
    requestName: asked.name ?? 'launch',
    requestOptions: options && {
      clusterName: 'c1',
      idleMinutesToAutostop: null,
      down: false,
      dryrun: false,
      ...options,
    },
    atClientSide: asked.atClientSide ?? false,
    user,
    clientApiVersion: asked.clientApiVersion === undefined ? 56 : asked.clientApiVersion,
    clientVersion: asked.clientVersion === undefined ? '0.13.0' : asked.clientVersion,
  });
  const request = decodeRequest(JSON.parse(body));
  const review = await reviewed(request, 20);
  const { task, skypilot_config } = inside(
    review.answer ?? encodeTexts(request.task, request.skypilotConfig),
  ) as { task: string; skypilot_config: string };
  return { ...review, task_: task, config: skypilot_config };
}

/** Asks, and asks again with the answer, as SkyPilot does: the second answer must be the first one. */
export async function askTwice(
  ask: (asked?: Asked) => Promise<Answered>,
  asked: Asked = {},
): Promise<Answered> {
  const first = await ask(asked);
  if (!first.allowed) {
    throw new Error(`refused by ${first.policy}: ${first.message}`);
  }
  const second = await ask({ ...asked, task: first.task_, config: first.config });
  if (!second.allowed || second.changed || second.task_ !== first.task_ || second.config !== first.config) {
    throw new Error(
      `not idempotent: ${JSON.stringify([first.task_, second.task_, first.config, second.config])}`,
    );
  }
  return first;
}

/** A task with these resources, and other lines of YAML. */
export const taskWith = (resources: string, more = '') => `resources: ${resources}\nrun: hostname\n${more}`;

/** A policy that is asked about the resources of tasks. `asked`: what else the request has. */
export async function resourcePolicy(policy: string, options: Readonly<Record<string, unknown>>) {
  const { ask } = await chainOf([policy], options);
  return {
    ask,
    /** The resources of the answer. */
    resourcesAfter: async (resources: string, asked: Asked = {}) =>
      (await askTwice(ask, { task: taskWith(resources), ...asked })).task.resources,
    /** It returns the task as it came. */
    leaves: async (resources: string, asked: Asked = {}) => {
      const task = asked.task ?? taskWith(resources);
      expect(await askTwice(ask, { ...asked, task })).toMatchObject({ ...UNCHANGED, task_: task });
    },
    /** It rejects the task, for this reason. */
    refuses: async (resources: string, message: unknown, asked: Asked = {}) =>
      expect(await ask({ task: taskWith(resources), ...asked })).toMatchObject(rejectedWith(message)),
  };
}
