import { z } from 'zod';
import { type Call, type Claim, type Claims, type Proposal, reject, type Shortage } from '../src/index.ts';
import {
  AdminPolicy,
  acceleratorsIn,
  type Hardware,
  type LaunchLedger,
  type LaunchLimit,
  type LaunchOwner,
  type MutatedUserRequest,
  mayGiveAccelerators,
  namesOfUser,
  needsOneOf,
  type Payer,
  type PolicyServices,
  readingsOfAccelerator,
  requireLaunches,
  reviewLaunch,
  type UserRequest,
} from '../src/skypilot/index.ts';

/** By name, in any case. `form`: that of the names. A name of another form would limit nothing. */
const counts = (form: RegExp) =>
  z
    .record(z.string().regex(form), z.int().min(0).max(1_000_000))
    .refine(hasDistinctNames, 'a name is given twice, in upper and lower case')
    .default({});
const byKind = counts(/^[^/:\s]+$/);
const byOwner = counts(/^.+\/[^/:\s]+$/);

const options = z
  .object({
    gpu_quota_per_user: byKind.meta({
      description:
        'How many accelerators the clusters of a user may have at once: A100:8, H100:4, *:16. Names count in any case; * limits all kinds together.',
      pairs: 'accelerator:count',
    }),
    gpu_quota_per_workspace: byKind.meta({
      description: 'How many accelerators the clusters of a workspace may have at once.',
      pairs: 'accelerator:count',
    }),
    gpu_quota_users: byOwner.meta({
      description:
        "Other numbers for some users, by SkyPilot's id or name (of service accounts only by id): alice/A100:16. Each replaces the number of gpu_quota_per_user.",
      pairs: 'user/accelerator:count',
    }),
    gpu_quota_workspaces: byOwner.meta({
      description:
        'Other numbers for some workspaces: ml/A100:64. Each replaces the number of gpu_quota_per_workspace.',
      pairs: 'workspace/accelerator:count',
    }),
    gpu_quota_instance_types: counts(/^/).meta({
      description:
        'How many accelerators instance types have whose names do not show it: p4d.24xlarge:8, m6i.large:0. They count for *. A launch by another instance type must name its accelerators.',
      pairs: 'instance type:count',
    }),
    gpu_quota_hold: z.int().min(300).max(31_536_000).default(86_400).meta({
      description:
        'For how long the accelerators of a launch count, unless SkyPilot shows that its cluster is gone. One that is up counts as long as it is up.',
      unit: 'seconds',
    }),
    gpu_quota_grace: z.int().min(60).max(604_800).default(1800).meta({
      description:
        'How long a launch may take until SkyPilot shows its cluster. After that it does not count.',
      unit: 'seconds',
    }),
    gpu_quota_managed: z.enum(['refuse', 'check']).default('refuse').meta({
      description:
        'What happens to managed jobs, pools and services with accelerators. Their controller launches clusters without asking. refuse: they are refused. check: there must be room for them when they are asked for, and their clusters count when SkyPilot shows them, which it does only in consolidation mode.',
    }),
  })
  .superRefine(
    needsOneOf(
      'GpuQuotaPolicy',
      'gpu_quota_per_user',
      'gpu_quota_per_workspace',
      'gpu_quota_users',
      'gpu_quota_workspaces',
    ),
  );

type Options = z.infer<typeof options>;

/** Quotas span all projects, so they have their own. */
const PROJECT = 'skypilot-gpu-quota';

/** Limits the concurrent accelerators in clusters of a user, and of a workspace. */
export class GpuQuotaPolicy extends AdminPolicy<Options> implements LaunchLimit {
  static override readonly options = options;
  static override readonly needs = ['ledger'] as const;

  readonly name = 'GpuQuotaPolicy';
  readonly scheme = 'skypilot-gpus';
  readonly hold: number;
  /** Holding costs nothing: clusters must still count if SkyPilot does not answer for an hour. */
  readonly ahead: number;
  readonly grace: number;
  /** How long the counts of a reconciliation are used without another one. */
  readonly believed: number;
  readonly #launches: LaunchLedger;
  readonly #instanceTypes: ReadonlyMap<string, number>;
  /** The kinds with a limit. */
  readonly #kinds: readonly string[];

  constructor(values: Options, services: PolicyServices) {
    super(values, services);
    this.hold = values.gpu_quota_hold;
    this.ahead = values.gpu_quota_hold;
    this.grace = values.gpu_quota_grace;
    this.believed = this.ahead / 2;
    this.#instanceTypes = inLowerCase(values.gpu_quota_instance_types);
    this.#kinds = [
      ...Object.keys({ ...values.gpu_quota_per_user, ...values.gpu_quota_per_workspace }),
      ...Object.keys({ ...values.gpu_quota_users, ...values.gpu_quota_workspaces }).map(kindOf),
    ];
    this.#launches = requireLaunches(services);
    this.#launches.attach(this);
  }

  override validateAndMutate(request: UserRequest, call: Call): Promise<MutatedUserRequest> {
    return reviewLaunch(this, this.#launches, request, call, {
      managed: this.options.gpu_quota_managed,
      takes: (hardware) => this.#countOf(hardware)?.count !== 0,
      refusal:
        'Managed jobs, pools and services with accelerators cannot be counted: launch a cluster, or ask the operator.',
    });
  }

  payerOf({ userId }: LaunchOwner): Payer {
    return { projectId: PROJECT, userId };
  }

  claims(owner: LaunchOwner, hardware: Hardware, _proposal?: Proposal): Claims {
    const counted = this.#countOf(hardware);
    if (counted === undefined) {
      const machine = hardware.instanceType ?? 'a machine that SkyPilot chooses in this cloud';
      return reject(`The accelerators of ${machine.slice(0, 100)} are not known: name them in resources.`);
    }
    const { name, count } = counted;
    if (count === 0) {
      return [];
    }
    const { workspace, userId, userName } = owner;
    const kinds = name === undefined ? ['*'] : [...readingsOfAccelerator(name, this.#kinds), '*'];
    const { gpu_quota_per_user: perUser, gpu_quota_per_workspace: perWorkspace } = this.options;
    const { gpu_quota_users: users, gpu_quota_workspaces: workspaces } = this.options;
    return kinds.flatMap((kind) => {
      const ofUser = limitOf(perUser, users, namesOfUser({ id: userId, name: userName }), kind);
      const ofWorkspace = limitOf(perWorkspace, workspaces, [workspace], kind);
      const shown = kind === '*' ? 'accelerators' : (name ?? '');
      return [
        held(`gpu_quota/user/${userId}/${kind}`, ofUser, count, `${userName || userId} may have`, shown),
        held(
          `gpu_quota/workspace/${workspace}/${kind}`,
          ofWorkspace,
          count,
          `The workspace ${workspace} may have`,
          shown,
        ),
      ];
    });
  }

  /** On all nodes, in whole accelerators. `undefined` = unknown. */
  #countOf({
    nodes,
    accelerators,
    instanceType,
    cloud,
    requirements,
  }: Hardware): { readonly name: string | undefined; readonly count: number } | undefined {
    const told = accelerators ?? acceleratorsIn(instanceType);
    if (told !== null) {
      return { name: told.name, count: Math.ceil(told.count) * nodes };
    }
    if (instanceType === null) {
      return mayGiveAccelerators(cloud, requirements?.clouds) ? undefined : { name: undefined, count: 0 };
    }
    const listed = this.#instanceTypes.get(instanceType.toLowerCase());
    return listed === undefined ? undefined : { name: undefined, count: listed * nodes };
  }
}

/** `alice/A100` → `A100`. */
function kindOf(key: string): string {
  return key.slice(key.lastIndexOf('/') + 1);
}

function held(account: string, limit: number | undefined, count: number, who: string, what: string): Claim {
  return {
    kind: 'held',
    account,
    amount: BigInt(count),
    limit: limit === undefined ? undefined : BigInt(limit),
    refuse: ({ asked, taken }: Shortage) =>
      `${who} ${limit} ${what} at once, has ${taken}, and asks for ${asked}${taken > 0n ? ': stop a cluster first' : ''}.`,
  };
}

/** The limit of the first of `names` that has one. */
function limitOf(
  general: Readonly<Record<string, number>>,
  own: Readonly<Record<string, number>>,
  names: readonly string[],
  kind: string,
): number | undefined {
  const owns = inLowerCase(own);
  for (const name of names) {
    const number = owns.get(`${name}/${kind}`.toLowerCase());
    if (number !== undefined) {
      return number;
    }
  }
  return inLowerCase(general).get(kind);
}

function hasDistinctNames(numbers: Readonly<Record<string, number>>): boolean {
  return inLowerCase(numbers).size === Object.keys(numbers).length;
}

function inLowerCase(numbers: Readonly<Record<string, number>>): Map<string, number> {
  return new Map(Object.entries(numbers).map(([name, number]) => [name.toLowerCase(), number]));
}
