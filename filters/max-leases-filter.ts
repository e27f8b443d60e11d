import { z } from 'zod';
import {
  AccountLimits,
  type Amount,
  accountText,
  type Claim,
  type FilterServices,
  LedgerFilter,
  type Proposal,
  projectOf,
  type Shortage,
  userOf,
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
      'Limits for single projects, by id or name@domain. They override the limits above and those by tag: climate@Default:20 = twenty leases, climate@Default/physical:host:8 = eight leases with hosts.',
    pairs: 'project id:count, or project id/resource type:count',
    names: ['id', 'id/resource type', 'name@domain'],
  }),
  max_leases_tag_limits: byId.meta({
    description:
      'Limits for projects with a tag at Keystone. They override the limits above for projects. Of several tags the strictest decides.',
    pairs: 'tag:count, or tag/resource type:count',
    names: ['tag', 'tag/resource type'],
  }),
  max_leases_user_limits: byId.meta({
    description:
      'Limits for single users in each of their projects, by id or name@domain. They override the limits above.',
    pairs: 'user id:count, or user id/resource type:count',
    names: ['id', 'id/resource type', 'name@domain'],
  }),
});

type Options = z.infer<typeof options>;
type Limits = ReadonlyMap<string, number>;

interface Limit {
  readonly most: number;
  readonly whose: () => string;
}

/**
 * Limits the number of pending or active leases of a project, and of a user in it. Counts all leases, even
 * without a limit, so that later limits include them.
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
  readonly #projects: AccountLimits;
  readonly #users: AccountLimits;

  constructor(values: Options, services: FilterServices) {
    super(values, services);
    this.#projectTypes = new Map(Object.entries(values.max_leases_per_project_by_type));
    this.#userTypes = new Map(Object.entries(values.max_leases_per_user_by_type));
    const byType = { byType: true };
    this.#projects = new AccountLimits(
      values.max_leases_project_limits,
      values.max_leases_tag_limits,
      byType,
    );
    this.#users = new AccountLimits(values.max_leases_user_limits, {}, byType);
  }

  claims({ context, reservations, names }: Proposal): Claim[] {
    const { max_leases_per_project, max_leases_per_user } = this.options;
    const project = projectOf(context, names);
    const user = userOf(context, names);
    const account = `max_leases/user/${escaped(user.id)}`;
    const types = [...new Set(reservations.flatMap(({ resource_type }) => resource_type ?? []))];
    const ofProject = (general: number, type?: string): Limit => {
      const found = this.#projects.find(project, type);
      return { most: found?.limit ?? general, whose: () => accountText(project, found) };
    };
    const ofUser = (general: number, type?: string): Limit => ({
      most: this.#users.find(user, type)?.limit ?? general,
      whose: () => `${accountText(user)} in ${accountText(project)}`,
    });
    return [
      leaseCountClaim('max_leases/project', ofProject(max_leases_per_project)),
      leaseCountClaim(account, ofUser(max_leases_per_user)),
      ...types.flatMap((type) => [
        leaseCountClaim(
          `max_leases/project/type/${escaped(type)}`,
          ofProject(this.#projectTypes.get(type) ?? -1, type),
          type,
        ),
        leaseCountClaim(
          `${account}/type/${escaped(type)}`,
          ofUser(this.#userTypes.get(type) ?? -1, type),
          type,
        ),
      ]),
    ];
  }
}

/** Escaped for an account name, so that different ids and types never give the same name. */
function escaped(part: string): string {
  return part.replace(/[%/]/g, encodeURIComponent);
}

function leaseCountClaim(account: string, { most, whose }: Limit, type?: string): Claim {
  const limit: Amount | undefined = most < 0 ? undefined : BigInt(most);
  const leases = type === undefined ? 'pending or active leases' : `pending or active leases with ${type}`;
  return {
    kind: 'held',
    account,
    amount: 1n,
    limit,
    refuse: ({ taken }: Shortage) =>
      `${capitalized(whose())} has ${taken} ${leases}; the most allowed is ${most}.`,
  };
}

function capitalized(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
}
