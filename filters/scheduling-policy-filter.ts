import { z } from 'zod';
import {
  allow,
  BaseFilter,
  type Context,
  formatResourceProperties,
  type Lease,
  type Problem,
  type PropertyRequirement,
  parseResourceProperties,
  type Reservation,
  reject,
  reservationsAfterUpdate,
  type SectionProblem,
  type Verdict,
} from '../src/index.ts';
import type {
  EffectivePolicy,
  MergeStrategy,
  NodeSelector,
  Reason,
  SchedulingPolicies,
} from '../src/kubernetes/index.ts';

const options = z.object({
  scheduling_policy_path: z.string().optional().meta({
    serverOnly: true,
    watched: true,
    description:
      'A YAML file, or a folder of them, with scheduling policies, roles and bindings. It may be the one that Kubernetes uses, or another.',
  }),
  scheduling_policy_merge_strategy: z
    .enum(['deep', 'first', 'simple', 'intersection'] as const satisfies readonly MergeStrategy[])
    .default('deep')
    .meta({
      serverOnly: true,
      description:
        'How to merge the policies of a user who may use several: see merge_strategy in [kubernetes].',
    }),
  scheduling_policy_flavor_instances: z.enum(['refuse', 'allow']).default('refuse').meta({
    serverOnly: true,
    description:
      'What to do with reservations of flavor:instance: the flavor determines the machines, and Blazar does not send its properties. refuse = allow them only if the policies allow any node and add no default; allow = always allow them.',
  }),
});

type Options = z.infer<typeof options>;

/**
 * Names in `hypervisor_properties` that are sizes or types of a hypervisor, not labels. Blazar looks up all
 * other names as in `resource_properties`, so they are labels too.
 */
const CAPACITIES: ReadonlySet<string> = new Set([
  'vcpus',
  'memory_mb',
  'local_gb',
  'cpu_info',
  'hypervisor_type',
  'hypervisor_version',
]);

const MAX_REASONS = 10;
const MAX_VALUE = 200;

/**
 * The traits of a Nova flavor determine the machines, and Blazar sends only the flavor's id. Blazar ignores
 * the user's `resource_properties` and stores the flavor there. Source: Blazar,
 * `flavor_plugin.reserve_resource`.
 */
const FLAVOR_INSTANCE = 'flavor:instance';
/** Stands for any label, because a flavor may require any. No policy can name it. */
const ANY_LABEL: NodeSelector = { label: '\u0000', value: undefined, written: 'a flavor' };

/** Resource types that reserve no machine. */
const TYPES_WITHOUT_NODES: ReadonlySet<string> = new Set(['virtual:floatingip', 'network']);

/** Loaded when the filter is opened: loading YAML earlier would delay every command. */
interface Opened {
  readonly policies: SchedulingPolicies;
  readonly formatReason: (reason: Reason) => string;
}

interface ReservationReview {
  readonly reasons: readonly string[];
  /** The reservation with the defaults; `undefined` = nothing to add. */
  readonly changed: Reservation | undefined;
}

/** Checks the required machine properties of a lease against its user's scheduling policies. */
export class SchedulingPolicyFilter extends BaseFilter<Options> {
  static override readonly options = options;
  static override readonly check = policyProblems;

  #opened: Opened | undefined;

  override async open(): Promise<void> {
    const { SchedulingPolicies: Policies, formatReason } = await import('../src/kubernetes/index.ts');
    const { scheduling_policy_path, scheduling_policy_merge_strategy: strategy } = this.options;
    const paths = scheduling_policy_path === undefined ? [] : [scheduling_policy_path];
    this.#opened = { policies: Policies.read(paths, { strategy }).policies, formatReason };
  }

  checkCreate(context: Context, lease: Lease): Verdict {
    const reservations = lease.reservations ?? [];
    const reviews = this.#review(context, reservations, { addDefaults: true });
    const reasons = reviews.flatMap((review) => review.reasons);
    if (reasons.length > 0) {
      return reject(`The lease does not fit the scheduling policies: ${listed(reasons)}.`);
    }
    return reviews.every(({ changed }) => changed === undefined)
      ? allow()
      : allow({
          ...lease,
          reservations: reservations.map((reservation, index) => reviews[index]?.changed ?? reservation),
        });
  }

  /** Checks the lease as it would be after the update. Adds no defaults, because the lease may be running. */
  checkUpdate(context: Context, currentLease: Lease, newLease: Lease): Verdict {
    const reservations = reservationsAfterUpdate(currentLease, newLease);
    const reviews = this.#review(context, reservations, { addDefaults: false });
    const reasons = reviews.flatMap((review) => review.reasons);
    return reasons.length === 0
      ? allow()
      : reject(`The lease would not fit the scheduling policies: ${listed(reasons)}.`);
  }

  onEnd(): void {}

  #review(
    { user_id, project_id }: Context,
    reservations: readonly Reservation[],
    { addDefaults }: { readonly addDefaults: boolean },
  ): ReservationReview[] {
    if (this.#opened === undefined) {
      throw new Error('the scheduling policies have not been read');
    }
    const { policies, formatReason } = this.#opened;
    const policy = policies.effectiveFor({
      user: user_id,
      groups: [`project:${project_id}`, 'system:authenticated'],
    });
    let refused = 0;
    return reservations.map((reservation, index): ReservationReview => {
      const { resource_type } = reservation;
      if (refused > MAX_REASONS) {
        // The message shows no more reasons.
        return { reasons: [], changed: undefined };
      }
      if (resource_type !== undefined && TYPES_WITHOUT_NODES.has(resource_type)) {
        return { reasons: [], changed: undefined };
      }
      const place = `reservations[${index}]`;
      if (resource_type === FLAVOR_INSTANCE) {
        const isRefused =
          this.options.scheduling_policy_flavor_instances === 'refuse' && !allowsAnyNode(policy);
        refused += isRefused ? 1 : 0;
        return { reasons: isRefused ? [`${place}.flavor_id: ${FLAVOR_REFUSAL}`] : [], changed: undefined };
      }
      const demands = demandsOf(reservation);
      if ('mistake' in demands) {
        refused += 1;
        return { reasons: [`${place}.${demands.mistake}`], changed: undefined };
      }
      const selectors = [...demands.resource, ...demands.hypervisor].map(selector);
      const part = `${place}.resource_properties`;
      const { added, reasons } = policy.reviewNodeSelectors(selectors, part, { addDefaults });
      refused += reasons.length;
      return {
        reasons: reasons.map(formatReason),
        changed: added.length === 0 ? undefined : withDefaults(reservation, demands.resource, added),
      };
    });
  }
}

const FLAVOR_REFUSAL =
  'expected a reservation of another type than flavor:instance, since the nodes that a flavor selects cannot be judged';

function allowsAnyNode(policy: EffectivePolicy): boolean {
  const { added, reasons } = policy.reviewNodeSelectors([ANY_LABEL], '', { addDefaults: true });
  return reasons.length === 0 && added.length === 0;
}

type Demands =
  | { readonly resource: PropertyRequirement[]; readonly hypervisor: PropertyRequirement[] }
  | { readonly mistake: string };

function demandsOf(reservation: Reservation): Demands {
  const read = (name: string) => {
    try {
      return parseResourceProperties(reservation[name]);
    } catch (thrown) {
      return `${name}: ${thrown instanceof Error ? thrown.message : String(thrown)}`;
    }
  };
  const resource = read('resource_properties');
  const hypervisor = read('hypervisor_properties');
  if (typeof resource === 'string' || typeof hypervisor === 'string') {
    return { mistake: typeof resource === 'string' ? resource : String(hypervisor) };
  }
  return { resource, hypervisor: hypervisor.filter(({ name }) => !CAPACITIES.has(name)) };
}

/** Any operator other than equality could match any value. */
function selector({ name, operator, value }: PropertyRequirement): NodeSelector {
  return operator === '=='
    ? { label: name, value }
    : { label: name, value: undefined, written: `${operator} ${quoted(value)}` };
}

/** Shortened: a lease may contain values of any length. */
function quoted(value: string): string {
  return JSON.stringify(value.length > MAX_VALUE ? `${value.slice(0, MAX_VALUE)}…` : value);
}

function listed(reasons: readonly string[]): string {
  const shown = reasons.slice(0, MAX_REASONS).join('; ');
  return reasons.length > MAX_REASONS ? `${shown}; and more` : shown;
}

function withDefaults(
  reservation: Reservation,
  demands: readonly PropertyRequirement[],
  added: readonly { readonly label: string; readonly value: string }[],
): Reservation {
  const defaults = added.map(({ label, value }) => ({ name: label, operator: '==' as const, value }));
  return { ...reservation, resource_properties: formatResourceProperties([...demands, ...defaults]) };
}

async function policyProblems({
  scheduling_policy_path: path,
}: Options): Promise<readonly (Problem | SectionProblem)[]> {
  if (path === undefined) {
    return [{ option: 'scheduling_policy_path', message: 'expected a file or a folder, got nothing' }];
  }
  const { readPolicyDocuments } = await import('../src/kubernetes/index.ts');
  return readPolicyDocuments([path]).problems;
}
