/** What a task asks for: one mapping, or one with alternatives. */

import { YamlDocument } from '../yaml/document.ts';
import { isMapping, type Mapping } from '../yaml/tree.ts';
import type { Task } from './user-request.ts';

/** One way to fulfil a task: `accelerators`, `cpus`, `infra`, `use_spot` and so on. */
export type Resources = Mapping;

/** A kind of accelerator, and how many of them. */
export interface Accelerator {
  readonly name: string;
  /** May be a fraction. */
  readonly count: number;
}

const ALTERNATIVES = ['any_of', 'ordered'] as const;

/**
 * Everything that the task may be given: each of `any_of` or `ordered` with what stands beside it as its default, or else
 * the one that there is. A task that asks for nothing has one that is empty.
 *
 * @throws TypeError for a task whose resources have another form.
 */
export function resourcesOf(task: Task): Resources[] {
  const { common, alternatives } = partsOf(task);
  return alternatives?.map((own) => ({ ...common, ...own })) ?? [common];
}

/**
 * Changes the resources of a task in place. `change` is asked about each alternative as `resourcesOf` shows it, and answers
 * with the members to set; `undefined` as a member removes it. An empty answer leaves the alternative as it is.
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
  // What is removed from one of them may not stand beside them all: it moves into the others.
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
    throw new TypeError('expected a mapping as the resources of the task');
  }
  for (const name of ALTERNATIVES) {
    const { [name]: alternatives, ...common } = resources;
    if (alternatives === undefined || alternatives === null) {
      continue;
    }
    if (!Array.isArray(alternatives) || !alternatives.every(isMapping)) {
      throw new TypeError(`expected a list of mappings as resources.${name} of the task`);
    }
    // Without any there would be nothing that a policy sees, and what stands beside it would pass.
    if (alternatives.length > 0) {
      return { common, alternatives, name };
    }
  }
  return { common: resources };
}

/**
 * The accelerators that resources name, as `accelerators` or by its other name `gpus`, in any of their forms: `A100`, `A100:8`,
 * `{A100: 8}`, `[A100:8, H100:4]`. More than one = one of them. Empty when none is asked for.
 *
 * @throws TypeError for another form.
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
    throw new TypeError('expected a text, a list or a mapping as the accelerators');
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
    // SkyPilot reads such a text as YAML once more.
    return acceleratorsOf({ accelerators: YamlDocument.parse(trimmed).value });
  }
  const [name = '', count = '1', ...further] = trimmed.split(':');
  if (further.length > 0) {
    throw new TypeError('expected one number of accelerators behind a name');
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
