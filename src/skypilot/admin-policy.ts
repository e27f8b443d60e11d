import { z } from 'zod';
import type { Call } from '../filter/call.ts';
import type { SharedServices } from '../filter/services.ts';
import type { MutatedUserRequest, UserRequest } from './user-request.ts';

/** Recognizes classes and errors of another copy of this package, which may be installed beside a policy. */
const POLICY_MARKER = Symbol.for('blazar-enforcement.admin-policy');
const REJECTED_MARKER = Symbol.for('blazar-enforcement.policy-rejected');

/** Services of a policy, the same as those of filters. */
export type PolicyServices = SharedServices;

/**
 * Rejects the request. SkyPilot shows `message` to the user after "User request is rejected by admin policy": say
 * what is not allowed and what would be.
 */
export class PolicyRejected extends Error {
  override readonly name = 'PolicyRejected';
  readonly [REJECTED_MARKER] = true;
}

/** Whether an error is a rejection, from this copy of the package or another. */
export function isRejection(thrown: unknown): thrown is PolicyRejected {
  return thrown instanceof Error && REJECTED_MARKER in thrown;
}

/**
 * A rule for the requests of SkyPilot users.
 *
 * The contract of all policies:
 * - `options` is a zod object. Its keys are option names in `[skypilot]`. They start with the policy's name in snake
 *   case without `Policy`: `SetMaxAutostopIdleMinutesPolicy` owns `set_max_autostop_idle_minutes` and
 *   `set_max_autostop_idle_minutes_*`.
 * - `validateAndMutate` returns the request to carry out, or throws `PolicyRejected`. Any other error and a missed
 *   deadline are failures: the request is refused, and the user does not learn the cause.
 * - It is idempotent and cheap. SkyPilot calls it several times for one command, each time with the previous result.
 * - The request is a copy, which the policy may change in place.
 */
export abstract class AdminPolicy<Options = unknown> {
  static readonly [POLICY_MARKER] = true;
  static readonly options: z.ZodObject = z.object({});

  protected readonly options: Options;
  protected readonly services: PolicyServices;

  constructor(options: Options, services: PolicyServices) {
    this.options = options;
    this.services = services;
  }

  abstract validateAndMutate(
    userRequest: UserRequest,
    call: Call,
  ): MutatedUserRequest | Promise<MutatedUserRequest>;

  /** Releases connections and timers. Optional. */
  close(): void | Promise<void> {}
}

/** The class of a policy, as the loader finds it. */
export interface PolicyClass {
  new (options: never, services: PolicyServices): AdminPolicy;
  readonly name: string;
  readonly options: z.ZodObject;
}

/** Whether a value is a subclass of `AdminPolicy`, from this copy of the package or another. */
export function isPolicyClass(value: unknown): value is PolicyClass {
  return typeof value === 'function' && POLICY_MARKER in value && value.name !== 'AdminPolicy';
}
