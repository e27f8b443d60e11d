/** Reads and changes the resources of a task: one mapping, or one with alternatives. */

import { YamlDocument } from '../yaml/document.ts';
import { isMapping, type Mapping } from '../yaml/tree.ts';
import type { Task } from './user-request.ts';

/** One alternative: `accelerators`, `cpus`, `infra`, `use_spot` and so on. */
export type Resources = Mapping;

/** A kind of accelerator and its number. */
export interface Accelerator {
  readonly name: string;
  /** May be a fraction. */
  readonly count: number;
}

const ALTERNATIVES = ['any_of', 'ordered'] as const;

/**
 * All alternatives of a task: each entry of `any_of` or `ordered` with the outer values as defaults, otherwise the
 * only one. A task without resources has one empty alternative.
 *
 * @throws TypeError if the resources have an unknown form
 */
export function resourcesOf(task: Task): Resources[] {
  const { common, alternatives } = partsOf(task);
  return alternatives?.map((own) => ({ ...common, ...own })) ?? [common];
}

/**
 * Changes the resources of a task in place. `change` is called with each alternative as returned by `resourcesOf`,
 * and returns the members to set; `undefined` removes a member. An empty result changes nothing.
 */
export function changeResources(task: Task, change: (resources: Resources) => Mapping): void {
  const { common, alternatives, name } = partsOf(task);
  if (alternatives === undefined || name === undefined) {
    const changed = changedBy(common, change(common));
    if (changed !== common) {
      task.resources = changed;
    }
    return;
  }
  const answers = alternatives.map((own) => change({ ...common, ...own }));
  // A member removed from one alternative cannot stay an outer default: it moves into the other alternatives.
  const moved = Object.entries(common).filter(([member]) =>
    answers.some((changes) => Object.hasOwn(changes, member) && changes[member] === undefined),
  );
  const changed = alternatives.map((own, index) =>
    changedBy(moved.length === 0 ? own : { ...Object.fromEntries(moved), ...own }, answers[index] ?? {}),
  );
  if (changed.some((own, index) => own !== alternatives[index])) {
    const left = changedBy(
      task.resources as Resources,
      Object.fromEntries(moved.map(([member]) => [member, undefined])),
    );
    task.resources = { ...left, [name]: changed };
  }
}

function changedBy(resources: Resources, changes: Mapping): Resources {
  if (Object.keys(changes).length === 0) {
    return resources;
  }
  return Object.fromEntries(
    Object.entries({ ...resources, ...changes }).filter(([, value]) => value !== undefined),
  );
}

function partsOf(task: Task): {
  common: Resources;
  alternatives?: readonly Resources[];
  name?: (typeof ALTERNATIVES)[number];
} {
  const resources = task.resources ?? {};
  if (!isMapping(resources)) {
    throw new TypeError('expected the resources of the task to be a mapping');
  }
  for (const name of ALTERNATIVES) {
    const { [name]: alternatives, ...common } = resources;
    if (alternatives === undefined || alternatives === null) {
      continue;
    }
    if (!Array.isArray(alternatives) || !alternatives.every(isMapping)) {
      throw new TypeError(`expected resources.${name} of the task to be a list of mappings`);
    }
    // With an empty list, policies would see no alternative, and the outer values would pass unchecked.
    if (alternatives.length > 0) {
      return { common, alternatives, name };
    }
  }
  return { common: resources };
}

/**
 * The accelerators of resources, from `accelerators` or its alias `gpus`, in any form: `A100`, `A100:8`, `{A100: 8}`,
 * `[A100:8, H100:4]`. Several are alternatives. Empty if there are none.
 *
 * @throws TypeError if they have an unknown form
 */
export function acceleratorsOf(resources: Resources): Accelerator[] {
  const accelerators = resources.accelerators ?? resources.gpus;
  if (accelerators === undefined || accelerators === null) {
    return [];
  }
  if (typeof accelerators === 'string') {
    return textOf(accelerators);
  }
  if (Array.isArray(accelerators)) {
    return accelerators.flatMap((item) => acceleratorsOf({ accelerators: item }));
  }
  if (!isMapping(accelerators)) {
    throw new TypeError('expected accelerators to be a string, a list or a mapping');
  }
  return Object.entries(accelerators).flatMap(([name, count]) =>
    count === null ? textOf(name) : [{ name, count: countOf(count) }],
  );
}

function textOf(text: string): Accelerator[] {
  const trimmed = text.trim();
  if (trimmed === '' || /^none$/i.test(trimmed)) {
    return [];
  }
  if (/^[[{]/.test(trimmed)) {
    // SkyPilot parses such a string as YAML again.
    return acceleratorsOf({ accelerators: YamlDocument.parse(trimmed).value });
  }
  const [name = '', count = '1', ...further] = trimmed.split(':');
  if (further.length > 0) {
    throw new TypeError('expected one number of accelerators after a name');
  }
  return [{ name: name.trim(), count: countOf(count) }];
}

function countOf(count: unknown): number {
  const number = typeof count === 'string' && count.trim() !== '' ? Number(count) : count;
  if (typeof number !== 'number' || !Number.isFinite(number) || number < 0) {
    throw new TypeError('expected a number of accelerators');
  }
  return number;
}
