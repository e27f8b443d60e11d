import { z } from 'zod';
import {
  type Amount,
  type Claim,
  type FilterServices,
  LedgerFilter,
  type Proposal,
  type Shortage,
} from '../src/index.ts';

/** -1 = no limit, as in Blazar. */
const limit = z.int().min(-1);
const byType = z.record(z.string(), limit).default({});
/** The text after the last slash is always a resource type, so that an id with a slash is not ambiguous. */
const byId = z
  .record(z.string().regex(/^(?:[^/]+|.+\/[^/]+)$/, 'id, or id/resource type'), limit)
  .default({});

const options = z.object({
  max_leases_per_project: limit.default(-1).meta({
    description: 'Maximum number of pending or active leases of a project. -1 = no limit.',
  }),
  max_leases_per_user: limit.default(-1).meta({
    description: 'Maximum number of pending or active leases of a user in a project. -1 = no limit.',
  }),
  max_leases_per_project_by_type: byType.meta({
    description:
      'Maximum number of leases of a project that reserve a resource type: physical:host:4 = four leases with hosts. Types that are not listed have no limit of their own.',
    pairs: 'resource type:count',
    names: ['resource type'],
  }),
  max_leases_per_user_by_type: byType.meta({
    description: 'Maximum number of leases of a user in a project that reserve a resource type.',
    pairs: 'resource type:count',
    names: ['resource type'],
  }),
  max_leases_project_limits: byId.meta({
    description:
      'Limits for single projects. They override the limits above: climate:20 = twenty leases, climate/physical:host:8 = eight leases with hosts.',
    pairs: 'project id:count, or project id/resource type:count',
    names: ['id', 'id/resource type'],
  }),
  max_leases_user_limits: byId.meta({
    description: 'Limits for single users in each of their projects. They override the limits above.',
    pairs: 'user id:count, or user id/resource type:count',
    names: ['id', 'id/resource type'],
  }),
});

type Options = z.infer<typeof options>;
type Limits = ReadonlyMap<string, number>;

/**
 * Limits the number of pending or active leases of a project, and of a user in it. Counts every lease, also where there is no limit,
 * so that a limit that is set later includes them.
 */
export class MaxLeasesFilter extends LedgerFilter<Options> {
  static override readonly options = options;
  static override readonly limitsNothing = (values: Options): string | undefined =>
    Object.values(values)
      .flatMap((limits) => (typeof limits === 'number' ? [limits] : Object.values(limits)))
      .every((count) => count < 0)
      ? 'limits nothing: the number of leases is unlimited; set max_leases_per_project or another of its limits'
      : undefined;

  readonly #projectTypes: Limits;
  readonly #userTypes: Limits;
  readonly #projects: Limits;
  readonly #users: Limits;

  constructor(values: Options, services: FilterServices) {
    super(values, services);
    this.#projectTypes = new Map(Object.entries(values.max_leases_per_project_by_type));
    this.#userTypes = new Map(Object.entries(values.max_leases_per_user_by_type));
    this.#projects = new Map(Object.entries(values.max_leases_project_limits));
    this.#users = new Map(Object.entries(values.max_leases_user_limits));
  }

  claims({ context, reservations }: Proposal): Claim[] {
    const { project_id, user_id } = context;
    const { max_leases_per_project, max_leases_per_user } = this.options;
    const account = `max_leases/user/${escaped(user_id)}`;
    const types = [...new Set(reservations.flatMap(({ resource_type }) => resource_type ?? []))];
    const project = `project ${project_id}`;
    const user = `user ${user_id} in project ${project_id}`;
    return [
      leaseCountClaim(
        'max_leases/project',
        totalLimit(this.#projects, project_id) ?? max_leases_per_project,
        project,
      ),
      leaseCountClaim(account, totalLimit(this.#users, user_id) ?? max_leases_per_user, user),
      ...types.flatMap((type) => {
        const ofProject = typeLimit(this.#projects, project_id, type) ?? this.#projectTypes.get(type) ?? -1;
        const ofUser = typeLimit(this.#users, user_id, type) ?? this.#userTypes.get(type) ?? -1;
        return [
          leaseCountClaim(`max_leases/project/type/${escaped(type)}`, ofProject, project, type),
          leaseCountClaim(`${account}/type/${escaped(type)}`, ofUser, user, type),
        ];
      }),
    ];
  }
}

/** An id with a slash cannot have a total limit of its own: the text after the slash would be read as a type. */
function totalLimit(limits: Limits, id: string): number | undefined {
  return id.includes('/') ? undefined : limits.get(id);
}

function typeLimit(limits: Limits, id: string, type: string): number | undefined {
  return type.includes('/') ? undefined : limits.get(`${id}/${type}`);
}

/** Escaped for use in the name of an account, so that different ids and types never give the same name. */
function escaped(part: string): string {
  return part.replace(/[%/]/g, encodeURIComponent);
}

function leaseCountClaim(account: string, most: number, whose: string, type?: string): Claim {
  const limit: Amount | undefined = most < 0 ? undefined : BigInt(most);
  const leases = type === undefined ? 'pending or active leases' : `pending or active leases with ${type}`;
  return {
    kind: 'held',
    account,
    amount: 1n,
    limit,
    refuse: ({ taken }: Shortage) =>
      `${capitalized(whose)} has ${taken} ${leases}; the most allowed is ${most}.`,
  };
}

function capitalized(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
}
