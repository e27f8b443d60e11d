/** Reads and changes the resources of a task: one mapping, or one with alternatives. */

import { isMapping, type Mapping } from '../../base/yaml/tree.ts';
import { PolicyRejected } from '../admin-policy.ts';
import type { Task } from '../request/user-request.ts';

/** One alternative: `accelerators`, `cpus`, `infra`, `use_spot` and so on. */
export type Resources = Mapping;

const ALTERNATIVES = ['any_of', 'ordered'] as const;
/** More alternatives than any task has. Policies multiply them. */
const MAX_ALTERNATIVES = 1000;

interface Parts {
  readonly common: Resources;
  /** At least one. */
  readonly alternatives?: readonly Resources[];
  readonly name?: (typeof ALTERNATIVES)[number];
}

/**
 * All alternatives of a task: each entry of `any_of` or `ordered` with the outer values as defaults,
 * otherwise the only one. A task without resources has one empty alternative.
 *
 * @throws PolicyRejected if the resources have an unknown form
 */
export function resourcesOf(task: Task): Resources[] {
  const { common, alternatives } = partsOf(task);
  return alternatives?.map((own) => withDefaults(common, own)) ?? [common];
}

/**
 * Changes the resources of a task in place. `change` is called with each alternative as returned by
 * `resourcesOf`, and returns the members to set; `undefined` removes a member. An empty result changes
 * nothing.
 */
export function changeResources(task: Task, change: (resources: Resources) => Mapping): void {
  expandResources(task, (resources) => [change(resources)]);
}

/**
 * Like `changeResources`, but `expand` may return several changes: each becomes a separate alternative. Those
 * of a list of accelerators keep its order.
 */
export function expandResources(task: Task, expand: (resources: Resources) => readonly Mapping[]): void {
  const parts = partsOf(task);
  const { common, alternatives = [{}] } = parts;
  const changes = alternatives.map((own) => expand(withDefaults(common, own)));
  if (changes.some((list) => list.length === 0)) {
    throw new Error('every alternative needs a change: an empty one keeps it');
  }
  if (changes.flat().length > MAX_ALTERNATIVES) {
    throw new PolicyRejected(`resources: expected at most ${MAX_ALTERNATIVES} alternatives.`);
  }
  if (changes.every((list) => list.length === 1 && isEmpty(list[0]))) {
    return;
  }
  const [[only = {}] = []] = changes;
  if (parts.alternatives === undefined && changes.flat().length === 1) {
    task.resources = changedBy(common, only);
    return;
  }
  task.resources = changedBy(isMapping(task.resources) ? task.resources : {}, alternativesOf(parts, changes));
}

/** The members to set: the changed alternatives. `undefined` = to remove. */
function alternativesOf(
  { common, alternatives = [{}], name }: Parts,
  changes: readonly (readonly Mapping[])[],
): Resources {
  // SkyPilot refuses a list of accelerators beside alternatives: it becomes alternatives, in its order.
  const preferred = name === undefined ? preferredAccelerators(common) : undefined;
  // A member removed from one alternative cannot stay an outer default: it moves into the alternatives. A
  // member that every new alternative sets is no longer a default.
  const isMoved = (member: string) =>
    (preferred !== undefined && (member === 'accelerators' || member === 'gpus')) ||
    (name === undefined && changes.flat().every((one) => Object.hasOwn(one, member))) ||
    changes.flat().some((one) => Object.hasOwn(one, member) && one[member] === undefined);
  const moved = Object.entries(common).filter(([member]) => isMoved(member));
  const changed = (preferred ?? [{}]).flatMap((accelerators) =>
    alternatives.flatMap((own, index) =>
      (changes[index] ?? []).map((change) =>
        changedBy(moved.length === 0 ? own : withDefaults(Object.fromEntries(moved), own), {
          ...accelerators,
          ...change,
        }),
      ),
    ),
  );
  const removed = Object.fromEntries(
    [...ALTERNATIVES, ...moved.map(([member]) => member)].map((member) => [member, undefined]),
  );
  const form = name ?? (preferred === undefined ? 'any_of' : 'ordered');
  return { ...removed, [form]: changed };
}

function preferredAccelerators({ accelerators, gpus }: Resources): Resources[] | undefined {
  const list = accelerators ?? gpus;
  return Array.isArray(list) && list.length > 1
    ? list.map((item) => ({ accelerators: item, gpus: undefined }))
    : undefined;
}

function changedBy(resources: Resources, changes: Mapping): Resources {
  if (isEmpty(changes)) {
    return resources;
  }
  return Object.fromEntries(
    Object.entries({ ...resources, ...changes }).filter(([, value]) => value !== undefined),
  );
}

function isEmpty(mapping: Mapping | undefined): boolean {
  return mapping === undefined || Object.keys(mapping).length === 0;
}

/** An alternative with the outer values, merged by name as in SkyPilot: `gpus` is `accelerators`. */
function withDefaults(common: Resources, own: Resources): Resources {
  const merged: Record<string, unknown> = { ...common, ...own };
  if (Object.hasOwn(own, 'gpus')) {
    delete merged.accelerators;
  } else if (Object.hasOwn(own, 'accelerators')) {
    delete merged.gpus;
  }
  if (isMapping(common.labels) && isMapping(own.labels)) {
    merged.labels = { ...common.labels, ...own.labels };
  }
  return merged;
}

function partsOf(task: Task): Parts {
  const resources = task.resources ?? {};
  if (!isMapping(resources)) {
    throw new PolicyRejected('resources: expected a mapping.');
  }
  refuseTwoNames(resources);
  const given = ALTERNATIVES.filter((name) => resources[name] !== undefined && resources[name] !== null);
  if (given.length > 1 && given.some((name) => !isEmptyList(resources[name]))) {
    throw new PolicyRejected('resources: expected any_of or ordered, not both.');
  }
  for (const name of given) {
    const { [name]: alternatives, ...common } = resources;
    if (!Array.isArray(alternatives) || !alternatives.every(isMapping)) {
      throw new PolicyRejected(`resources.${name}: expected a list of mappings.`);
    }
    // With an empty list, policies would see no alternative, and the outer values would pass unchecked.
    if (alternatives.length > 0) {
      for (const own of alternatives) {
        refuseTwoNames(own);
        if (ALTERNATIVES.some((one) => Object.hasOwn(own, one))) {
          throw new PolicyRejected(`resources.${name}: expected no alternatives inside of an alternative.`);
        }
      }
      return { common, alternatives, name };
    }
  }
  return { common: resources };
}

function refuseTwoNames({ accelerators, gpus }: Resources): void {
  if (accelerators !== undefined && gpus !== undefined) {
    throw new PolicyRejected('resources: expected accelerators or gpus, not both.');
  }
}

export function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}
