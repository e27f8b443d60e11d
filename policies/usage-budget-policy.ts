import { z } from 'zod';
import {
  budgetClaims,
  type Call,
  type Claims,
  type Problem,
  type ProjectState,
  type Proposal,
  parseMillionths,
  type Rejection,
  reject,
  type SectionProblem,
} from '../src/index.ts';
import {
  AdminPolicy,
  type CostMistake,
  catalogProblems,
  type Hardware,
  HardwareCosts,
  HardwareRates,
  type LaunchLedger,
  type LaunchLimit,
  type LaunchOwner,
  type MutatedUserRequest,
  namesOfUser,
  openCatalogs,
  type Payer,
  type PolicyServices,
  requireLaunches,
  reviewLaunch,
  type UserRequest,
  unknownClouds,
} from '../src/skypilot/index.ts';

const rate = z
  .number()
  .min(0)
  .max(1_000_000)
  .refine((number) => parseMillionths(String(number)) !== undefined, 'it has more than six decimals');
/** A name, perhaps in a cloud. Instance types of Kubernetes may contain a colon: `4CPU--16GB--A100:1`. */
const RATED = /^(?:[^/*:\s]+\/)?(?:[^/:\s]+|[^/\s]+--[^/\s]+)$/;
const UNIT = 'GPU-hours';
const CATALOG = 'usage_budget_catalog';
const names = z.record(z.string(), z.string().min(1).max(255));

const options = z.object({
  usage_budget_unit: z
    .string()
    .regex(/^[\p{L}\p{N} .-]{1,40}$/u)
    .default(UNIT)
    .meta({ description: 'The unit of budgets, as shown in messages.', expected: 'a few words' }),
  usage_budget_rates: z
    .record(z.string().regex(RATED), rate)
    .refine(hasDistinctNames, 'a name is given twice, in two spellings')
    .optional()
    .meta({
      description:
        'The cost of one accelerator per hour, by its name, in any case: A100:2, aws/A100:3, aws/*:2, *:1; and of one node of an instance type: m6i.large:0. The most specific counts. A launch whose accelerators have no rate costs nothing for them, unless there is one for *. Default: *:1; with usage_budget_catalog, none.',
      pairs: 'accelerator:rate',
    }),
  usage_budget_catalog: z.record(z.string(), z.string().min(1).max(4096)).default({}).meta({
    description:
      "Catalogs of prices: aws:/etc/blazar/aws.csv, gcp:/etc/blazar/gcp.csv, in the form of SkyPilot's own. A launch costs the price of the most expensive machine that SkyPilot may choose. A rate of its instance type or accelerator counts before a price, and a price before the rates of *. What has neither is refused. Read again when a file changes.",
    pairs: 'cloud:file',
    watched: true,
  }),
  usage_budget_spot_factor: rate.default(1).meta({
    description:
      'What the rate of spot instances is multiplied by. Catalogs have prices of their own for them.',
  }),
  usage_budget_hold: z.int().min(300).max(31_536_000).default(86_400).meta({
    description:
      'For how long a launch is charged ahead. The rest is given back when the cluster stops. An autostop with wait_for: none shortens it.',
    unit: 'seconds',
  }),
  usage_budget_grace: z.int().min(60).max(604_800).default(1800).meta({
    description:
      'How long a launch may take until SkyPilot shows its cluster. After that it counts as not launched, and gives back what it was charged.',
    unit: 'seconds',
  }),
  usage_budget_projects: names.default({}).meta({
    description:
      'The project whose budgets pay for a workspace: ml:3f2a…, *:shared. Default: the project that is named like the workspace. If some are listed, launches in others are refused.',
    pairs: 'workspace:project id',
  }),
  usage_budget_users: names.default({}).meta({
    description:
      "The user of the budgets for a user of SkyPilot, by SkyPilot's id or name (of service accounts only by id). Default: SkyPilot's id.",
    pairs: 'user:user id',
  }),
  usage_budget_required: z.boolean().default(true).meta({
    description:
      'Whether to refuse launches that cost something in projects without a budget. false = such projects have no limit.',
  }),
  usage_budget_managed: z.enum(['refuse', 'check']).default('refuse').meta({
    description:
      'What happens to managed jobs, pools and services that cost something. Their controller launches clusters without asking. refuse: they are refused. check: the budget must have room for them when they are asked for, and their clusters are charged when SkyPilot shows them, which it does only in consolidation mode.',
  }),
});

type Options = z.infer<typeof options>;

/**
 * Charges launches to the budgets of their workspace's project, and of their user in it: the same budgets as
 * for leases.
 */
export class UsageBudgetPolicy extends AdminPolicy<Options> implements LaunchLimit {
  static override readonly options = options;
  static override readonly check = problemsOf;
  static override readonly needs = ['ledger'] as const;

  readonly name = 'UsageBudgetPolicy';
  readonly scheme = 'skypilot';
  readonly hold: number;
  readonly grace: number;
  readonly #rates: HardwareRates;
  readonly #launches: LaunchLedger;
  /** Set when the policy is opened. */
  #costs: HardwareCosts | undefined;

  constructor(values: Options, services: PolicyServices) {
    super(values, services);
    this.hold = values.usage_budget_hold;
    this.grace = values.usage_budget_grace;
    // Without catalogs, each accelerator costs one unit. With them, hardware without a price needs its own rate.
    this.#rates = new HardwareRates(
      values.usage_budget_rates ?? (Object.keys(values.usage_budget_catalog).length === 0 ? { '*': 1 } : {}),
      values.usage_budget_spot_factor,
    );
    this.#launches = requireLaunches(services);
    this.#launches.attach(this);
  }

  override async open(): Promise<void> {
    this.#costs = new HardwareCosts(
      this.#rates,
      await openCatalogs(this.options.usage_budget_catalog, CATALOG),
    );
  }

  override validateAndMutate(request: UserRequest, call: Call): Promise<MutatedUserRequest> {
    return reviewLaunch(this, this.#launches, request, call, {
      managed: this.options.usage_budget_managed,
      takes: (hardware) => this.#costOf(hardware) !== 0n,
      refusal:
        'Managed jobs, pools and services that cost something cannot be charged to the budget: launch a cluster, or ask the operator.',
      secondsOf: (longest) => Math.min(this.hold, longest === undefined ? this.hold : longest + this.grace),
    });
  }

  payerOf({ workspace, userId, userName }: LaunchOwner): Payer | Rejection {
    const { usage_budget_projects: projects, usage_budget_users: users } = this.options;
    const own = (of: Readonly<Record<string, string>>, name: string) =>
      Object.hasOwn(of, name) ? of[name] : undefined;
    const projectId =
      Object.keys(projects).length === 0 ? workspace : (own(projects, workspace) ?? own(projects, '*'));
    const [payer] = namesOfUser({ id: userId, name: userName }).flatMap((name) => own(users, name) ?? []);
    return projectId === undefined
      ? reject(`The workspace ${JSON.stringify(workspace.slice(0, 200))} has no project that pays for it.`)
      : { projectId, userId: payer ?? userId };
  }

  claims(
    owner: LaunchOwner,
    hardware: Hardware,
    { context, start, end }: Proposal,
    { budgets }: ProjectState,
  ): Claims {
    const cost = this.#costOf(hardware);
    if (typeof cost !== 'bigint') {
      return reject(`The cost of the launch cannot be determined: ${cost.mistake}.`);
    }
    if (cost === 0n) {
      return [];
    }
    return budgetClaims({
      start,
      end,
      perSecond: cost,
      budgets,
      userId: context.user_id,
      isRequired: this.options.usage_budget_required,
      project: `the workspace ${owner.workspace}`,
      user: `the user ${owner.userName === '' ? owner.userId : owner.userName}`,
      unit: this.options.usage_budget_unit,
      what: 'launch',
    });
  }

  #costOf(hardware: Hardware): bigint | CostMistake {
    if (this.#costs === undefined) {
      throw new Error('the catalogs have not been read');
    }
    return this.#costs.costOf(hardware);
  }
}

function hasDistinctNames(rates: Readonly<Record<string, number>>): boolean {
  return new HardwareRates(rates).names.length === Object.keys(rates).length;
}

async function problemsOf({
  usage_budget_catalog: catalogs,
  usage_budget_rates: rates = {},
  usage_budget_unit: unit,
}: Options): Promise<(Problem | SectionProblem)[]> {
  const inClouds = Object.keys(rates).filter((name) => name.includes('/'));
  const isDoubtful = Object.keys(catalogs).length > 0 && unit === UNIT;
  return [
    ...(await catalogProblems(catalogs, CATALOG)),
    ...unknownClouds(inClouds, 'usage_budget_rates', 'most likely never applies'),
    ...(isDoubtful
      ? [
          {
            severity: 'warning' as const,
            section: 'skypilot',
            option: 'usage_budget_unit',
            message: `catalogs have prices, and the unit is ${UNIT}; set it to the currency of the prices, such as US dollars`,
          },
        ]
      : []),
  ];
}
