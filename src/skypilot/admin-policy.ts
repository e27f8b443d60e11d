import { z } from 'zod';
import type { OptionsCheck } from '../config/option-groups.ts';
import type { SharedServices } from '../filter/services.ts';
import type { Call, RuleOutcomes } from '../filter/verdict.ts';
import type { LaunchLedger } from './charging/contract.ts';
import type { MutatedUserRequest, UserRequest } from './request/user-request.ts';

/** Recognizes classes and errors of another copy of this package, which may be installed with a policy. */
const POLICY_MARKER = Symbol.for('blazar-enforcement.admin-policy');
const REJECTED_MARKER = Symbol.for('blazar-enforcement.policy-rejected');

/** Additional services that an included policy may need. */
export type PolicyNeed = 'ledger' | 'thread';

/** Services of a policy: those of filters, and those in its `needs`. */
export interface PolicyServices extends SharedServices {
  /** For an included policy with `needs = ['ledger']`. */
  readonly launches?: LaunchLedger | undefined;
}

/**
 * Rejects the request. SkyPilot shows `message` to the user after "User request is rejected by admin policy":
 * name what is not allowed and what would be.
 */
export class PolicyRejected extends Error {
  override readonly name = 'PolicyRejected';
  readonly [REJECTED_MARKER] = true;
  /** For policies with named rules: the rules that rejected the request, for the decision. */
  readonly rules?: RuleOutcomes | undefined;

  constructor(message?: string, options?: ErrorOptions & { readonly rules?: RuleOutcomes }) {
    super(message, options);
    this.rules = options?.rules;
  }
}

/** Whether an error is a rejection, from this copy of the package or another. */
export function isRejection(thrown: unknown): thrown is PolicyRejected {
  return thrown instanceof Error && REJECTED_MARKER in thrown;
}

/**
 * A rule for the requests of SkyPilot users.
 *
 * The contract of all policies:
 * - `options` is a zod object. Its keys are option names in `[skypilot]`. They start with the policy's name
 *   in snake case without `Policy`: `SetMaxAutostopIdleMinutesPolicy` owns `set_max_autostop_idle_minutes`
 *   and `set_max_autostop_idle_minutes_*`.
 * - `validateAndMutate` returns the request to carry out, or throws `PolicyRejected`, or another `Error` with
 *   `expose = true`, whose message is also shown to the user. Any other error and a missed deadline are
 *   failures: the request is refused, and the cause is hidden from the user.
 * - It is idempotent and cheap. SkyPilot calls it several times for one command, each time with the previous
 *   result.
 * - If a later policy changes the request, it is called again with the result. Policies that undo each
 *   other's changes fail.
 * - The request is a copy, which the policy may change in place.
 */
export abstract class AdminPolicy<Options = unknown> {
  static readonly [POLICY_MARKER] = true;
  static readonly options: z.ZodObject = z.object({});
  /**
   * Additional services of the policy; only for included policies. `ledger`: it always runs in the process.
   * `thread`: a thread of its own, unless `isolation` is `none`, because parsing its large files would block
   * the process.
   */
  static readonly needs: readonly PolicyNeed[] = [];
  /**
   * Whether the policy judges only the original request: it is not called again when a later policy changes
   * the request, which may undo its own changes. For policies that count, for example. Default: no.
   */
  static readonly askedOnce: boolean = false;

  /** Checks what `options` cannot, such as content of named files. Called before construction. Optional. */
  static readonly check?: OptionsCheck | undefined;

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

  /**
   * Prepares the policy, such as by reading files that its options name. Called once, before any request.
   * Throw to refuse the configuration. Optional.
   */
  open(): void | Promise<void> {}

  /** Releases connections and timers. Optional. */
  close(): void | Promise<void> {}
}

/** For `superRefine` of a policy's options: one of `names` must be set and not empty. */
export function needsOneOf(
  policy: string,
  ...names: readonly string[]
): (values: Readonly<Record<string, unknown>>, check: z.core.$RefinementCtx) => void {
  const isSet = (value: unknown) =>
    value !== undefined && (typeof value !== 'object' || value === null || Object.keys(value).length > 0);
  return (values, check) => {
    if (!names.some((name) => isSet(values[name]))) {
      const missing = names.length === 1 ? 'it is not set' : 'none of them is set';
      check.addIssue({ code: 'custom', message: `${policy} needs ${names.join(' or ')}, and ${missing}` });
    }
  };
}

/** The class of a policy, as the loader finds it. */
export interface PolicyClass {
  new (options: never, services: PolicyServices): AdminPolicy;
  readonly name: string;
  readonly options: z.ZodObject;
  /** Missing in classes of another copy of the package. */
  readonly needs?: readonly PolicyNeed[];
  /** As `needs`. */
  readonly askedOnce?: boolean;
  readonly check?: OptionsCheck | undefined;
}

/** Whether a value is a subclass of `AdminPolicy`, from this copy of the package or another. */
export function isPolicyClass(value: unknown): value is PolicyClass {
  return typeof value === 'function' && POLICY_MARKER in value && value.name !== 'AdminPolicy';
}
