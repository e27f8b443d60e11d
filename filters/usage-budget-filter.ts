import { z } from 'zod';
import {
  type Allocation,
  accountText,
  budgetClaims,
  type Claims,
  type FilterServices,
  hasSoundCounts,
  LedgerFilter,
  type Precision,
  type ProjectState,
  type Proposal,
  parseMillionths,
  projectOf,
  type Reservation,
  reject,
  reservationSize,
  userOf,
} from '../src/index.ts';

/** JavaScript writes `0.1` as it was read, so that amounts are free of floating-point errors. */
const rate = z
  .number()
  .min(0)
  .max(1_000_000)
  .refine((number) => parseMillionths(String(number)) !== undefined, 'it has more than six decimals');
const rates = z.record(z.string(), rate);

const options = z.object({
  usage_budget_unit: z
    .string()
    .regex(/^[\p{L}\p{N} .-]{1,40}$/u)
    .default('node-hours')
    .meta({
      description: 'The unit of budgets, as shown in messages.',
      expected: 'a few words',
    }),
  usage_budget_rates: rates.default({ 'physical:host': 1 }).meta({
    description:
      'The cost of one resource of a type per hour: physical:host:1, virtual:floatingip:0.01. Types that are not listed cost nothing, unless there is a rate for *.',
    pairs: 'resource type:rate',
    names: ['resource type', '*'],
  }),
  usage_budget_flavor_rates: rates.default({}).meta({
    description:
      'The cost of one instance of a flavor per hour, by the flavor_id of the reservation. Overrides the rate of flavor:instance.',
    pairs: 'flavor id:rate',
    names: ['id'],
  }),
  usage_budget_rate_attribute: z.string().regex(/^\S+$/).optional().meta({
    description:
      'An attribute of the allocated resource that the rate is multiplied by, such as su_factor. Resources without this attribute have the factor 1.',
    expected: 'the name of an attribute',
  }),
  usage_budget_rate_attribute_max: rate.optional().meta({
    description:
      'The largest value of that attribute. Used if Blazar does not say which hosts a lease gets: for updates, and for leases with several reservations of a type. Not set = the largest value among the hosts in the request.',
  }),
  usage_budget_required: z.boolean().default(true).meta({
    description:
      'Whether to refuse leases that cost something in projects without a budget. false = such projects have no limit.',
  }),
});

type Options = z.infer<typeof options>;

const MILLION = 1_000_000n;

/** What Nova accepts. Anything else could lead Blazar, which puts it into a URL, to another flavor: `4?`, `%34`. */
const FLAVOR_ID = /^[A-Za-z0-9._ -]+$/;

/** Whatever cannot be told. `mistake` completes `reservations.0: …`. */
interface Unknown {
  readonly mistake: string;
}

/**
 * Charges leases to the budgets of their project, and of their user in it. Each budget pays for usage while
 * it is valid. A lease with usage at a time without a valid budget is refused.
 */
export class UsageBudgetFilter extends LedgerFilter<Options> {
  static override readonly options = options;
  static override readonly limitsNothing = (values: Options): string | undefined =>
    [...Object.values(values.usage_budget_rates), ...Object.values(values.usage_budget_flavor_rates)].every(
      (cost) => cost === 0,
    )
      ? 'limits nothing: every lease is free; set usage_budget_rates'
      : undefined;

  readonly #rates: ReadonlyMap<string, bigint>;
  readonly #flavorRates: ReadonlyMap<string, bigint>;
  /** By `comparable` id: of several, the highest. */
  readonly #comparableRates: ReadonlyMap<string, bigint>;
  readonly #maxFactor: bigint | undefined;

  constructor(values: Options, services: FilterServices) {
    super(values, services);
    this.#rates = millionths(values.usage_budget_rates);
    this.#flavorRates = millionths(values.usage_budget_flavor_rates);
    const upwards = [...this.#flavorRates].sort(([, one], [, other]) => (one < other ? -1 : 1));
    this.#comparableRates = new Map(upwards.map(([id, rate]) => [comparable(id), rate]));
    const { usage_budget_rate_attribute_max: most } = values;
    this.#maxFactor = most === undefined ? undefined : parseMillionths(String(most));
  }

  claims(proposal: Proposal, { budgets }: ProjectState): Claims {
    const { context, start, end, reservations, names } = proposal;
    const unsure = this.#typesWithUnknownHosts(proposal);
    let total = 0n;
    for (const [index, reservation] of reservations.entries()) {
      const cost = this.#costOf(reservation, proposal, unsure.get(reservation.resource_type));
      if (typeof cost !== 'bigint') {
        return reject(`The cost of the lease cannot be determined: reservations.${index}: ${cost.mistake}.`);
      }
      total += cost;
    }
    if (total === 0n) {
      return [];
    }
    // Rounded up once for the whole lease: its cost is exact or too high by less than a millionth of a unit, never too low.
    const perSecond = (total + MILLION - 1n) / MILLION;
    const charged = budgetClaims({
      isRequired: this.options.usage_budget_required,
      start,
      end,
      perSecond,
      budgets,
      userId: context.user_id,
      project: accountText(projectOf(context, names)),
      user: accountText(userOf(context, names)),
      unit: this.options.usage_budget_unit,
      what: 'lease',
    });
    const precision = this.#precisionOf(proposal);
    return charged.map((claim) => ({ precision, ...claim }));
  }

  /** Before the lease is created, its hosts and their number are unknown. */
  #precisionOf(proposal: Proposal): Precision {
    const { usage_budget_rate_attribute: attribute } = this.options;
    const unknown = proposal.reservations.filter(
      (one) => (one.allocations ?? []).length === 0 && this.#unitRateOf(one, proposal) !== 0n,
    );
    if (unknown.length > 0 && attribute !== undefined) {
      return this.#maxFactor === undefined ? 'about' : 'at-most';
    }
    const isRange = ({ resource_type, min, max }: Reservation) =>
      resource_type === 'physical:host' && min !== max;
    return unknown.some(isRange) ? 'at-most' : 'exact';
  }

  /**
   * Types whose reservations may get other hosts than in the request, with the highest factor. Blazar reports
   * allocations by type: several reservations of one type all show the allocations of the last one.
   */
  #typesWithUnknownHosts({
    reservations,
    allocationsAreExact,
    allocationsAreByReservation: areApart = false,
  }: Proposal): Map<string | undefined, bigint> {
    const ofType = new Map<string | undefined, Reservation[]>();
    for (const reservation of reservations) {
      const others = ofType.get(reservation.resource_type) ?? [];
      others.push(reservation);
      ofType.set(reservation.resource_type, others);
    }
    return new Map(
      [...ofType]
        .filter(([, others]) => !allocationsAreExact || (others.length > 1 && !areApart))
        .map(([type, others]) => [type, this.#highestFactor(others)]),
    );
  }

  /**
   * Cost of the reservation per hour, in millionths of millionths of a unit. `unsure`: the factor for every
   * resource.
   */
  #costOf(reservation: Reservation, proposal: Proposal, unsure: bigint | undefined): bigint | Unknown {
    const { resource_type: type = '' } = reservation;
    const unitRate = this.#unitRateOf(reservation, proposal);
    if (unitRate === 0n || typeof unitRate !== 'bigint') {
      return unitRate;
    }
    const asked = reservationSize(reservation);
    if (asked === undefined) {
      return { mistake: 'expected max or amount as a whole number, 0 or more' };
    }
    if (!hasSoundCounts(reservation)) {
      return {
        mistake: 'expected min, max and amount as whole numbers, not as texts, and min not above max',
      };
    }
    const allocations = reservation.allocations ?? [];
    if (unsure !== undefined) {
      return unitRate * BigInt(asked) * unsure;
    }
    // Blazar allocates min to max hosts. Of any other type, a lease gets exactly the requested amount.
    const isCounted = type === 'physical:host' && allocations.length > 0;
    const size = isCounted
      ? Math.max(allocations.length, reservationSize({ max: reservation.min }) ?? 0)
      : asked;
    const factors = this.#factorsOf(allocations.slice(0, size));
    const known = factors.reduce((sum, factor) => sum + factor, 0n);
    // Unallocated hosts count with the highest factor.
    const rest = BigInt(size - factors.length);
    return unitRate * (known + (rest === 0n ? 0n : rest * this.#highestFactor([reservation])));
  }

  /** Per hour, in millionths of a unit. */
  #unitRateOf(reservation: Reservation, proposal: Proposal): bigint | Unknown {
    const { resource_type: type = '' } = reservation;
    const ofType = this.#rates.get(type) ?? this.#rates.get('*') ?? 0n;
    const flavor =
      type === 'flavor:instance' && this.#flavorRates.size > 0 ? flavorOf(reservation, proposal) : undefined;
    if (flavor === undefined || flavor === null) {
      return ofType;
    }
    const id = typeof flavor === 'number' ? String(flavor) : flavor;
    return typeof id === 'string' && FLAVOR_ID.test(id)
      ? (this.#flavorRates.get(id) ?? this.#comparableRates.get(comparable(id)) ?? ofType)
      : { mistake: 'expected flavor_id as the id of a flavor' };
  }

  #highestFactor(reservations: readonly Reservation[]): bigint {
    const { usage_budget_rate_attribute: attribute } = this.options;
    if (attribute === undefined) {
      return MILLION;
    }
    const known = reservations.flatMap(({ allocations }) => this.#factorsOf(allocations ?? []));
    const most = this.#maxFactor === undefined ? known : [...known, this.#maxFactor];
    return most.reduce(larger, most.length === 0 ? MILLION : 0n);
  }

  /** In millionths. Throws if a factor is invalid: the operator must fix it, and the lease is refused, not free. */
  #factorsOf(allocations: readonly Allocation[]): bigint[] {
    const { usage_budget_rate_attribute: attribute } = this.options;
    return allocations.map((allocation) => {
      const isThere = attribute !== undefined && Object.hasOwn(allocation, attribute);
      const written = isThere ? allocation[attribute] : null;
      if (written === null || written === undefined) {
        return MILLION;
      }
      const isNumber = typeof written === 'string' || typeof written === 'number';
      const factor = isNumber ? parseMillionths(String(written)) : undefined;
      if (factor === undefined) {
        throw new TypeError(
          `${attribute} of the allocation ${String(allocation.id)}: expected a number with up to six decimals, got ${JSON.stringify(written).slice(0, 100)}`,
        );
      }
      return factor;
    });
  }
}

/**
 * The flavor that the user has chosen. Blazar replaces it by a flavor with the id of the reservation, and keeps
 * the properties of the first in `resource_properties`. In a new lease, users write these, and Blazar ignores them.
 */
function flavorOf({ id, ...reservation }: Reservation, { request }: Proposal): unknown {
  const { flavor_id: flavor } = reservation;
  if (id === undefined || flavor !== id) {
    return flavor;
  }
  const there =
    request === undefined ? reservation : request.currentLease?.reservations?.find((one) => one.id === id);
  return there === undefined ? flavor : (idIn(there.resource_properties) ?? '');
}

function idIn(properties: unknown): unknown {
  try {
    const read: unknown = typeof properties === 'string' ? JSON.parse(properties) : properties;
    return typeof read === 'object' && read !== null && 'id' in read ? read.id : undefined;
  } catch {
    return undefined;
  }
}

/** Nova's database may ignore case and blanks at the end. */
function comparable(flavor: string): string {
  return flavor.trimEnd().toLowerCase();
}

function millionths(written: Readonly<Record<string, number>>): Map<string, bigint> {
  return new Map(
    Object.entries(written).map(([name, number]) => [name, parseMillionths(String(number)) ?? 0n]),
  );
}

function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
