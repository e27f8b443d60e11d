import { z } from 'zod';
import type { Call, SharedServices } from '../filter/services.ts';
import type { MutatedUserRequest, UserRequest } from './user-request.ts';

/** What tells them from others also when a second copy of this package is installed beside a policy. */
const POLICY_MARKER = Symbol.for('blazar-enforcement.admin-policy');
const REJECTED_MARKER = Symbol.for('blazar-enforcement.policy-rejected');

/** What a policy is given besides its options: as filters are. */
export type PolicyServices = SharedServices;

/**
 * The request must not be carried out; `message` is shown to the user as it is, behind "User request is rejected by admin
 * policy": what is not allowed, and what would be.
 */
export class PolicyRejected extends Error {
  override readonly name = 'PolicyRejected';
  readonly [REJECTED_MARKER] = true;
}

/** Whether something that was thrown is a rejection, of this copy of the package or of another. */
export function isRejection(thrown: unknown): thrown is PolicyRejected {
  return thrown instanceof Error && REJECTED_MARKER in thrown;
}

/**
 * A rule for the requests of SkyPilot's users.
 *
 * The contract, for all policies:
 * - `options` is a zod object. Its keys are names in `[skypilot]` and start with the policy's name in snake case without
 *   `Policy`: `SetMaxAutostopIdleMinutesPolicy` owns `set_max_autostop_idle_minutes` and what starts with it and `_`.
 * - `validateAndMutate` returns the request as it is to be carried out, or throws `PolicyRejected`. Whatever else it throws,
 *   and not to answer in time, is a failure: the request is refused, and the user is told nothing of the cause.
 * - It is idempotent and cheap. SkyPilot asks several times about one command, each time with the last answer.
 * - The request is a copy. It may be changed in place; nothing of it reaches another request.
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

  /** Lets go of connections and timers. May be left out. */
  close(): void | Promise<void> {}
}

/** A policy's class as the loader finds it. */
export interface PolicyClass {
  new (options: never, services: PolicyServices): AdminPolicy;
  readonly name: string;
  readonly options: z.ZodObject;
}

/** Whether a value is a subclass of `AdminPolicy`, of this copy of the package or of another. */
export function isPolicyClass(value: unknown): value is PolicyClass {
  return typeof value === 'function' && POLICY_MARKER in value && value.name !== 'AdminPolicy';
}
