/** What a policy changed in a request, for people to read: bounded, and without secrets. */

import { isDeepStrictEqual } from 'node:util';
import { isMapping, type Mapping, member, type Path } from '../../yaml/tree.ts';
import type { SecretValues } from '../secrets.ts';
import { type Change, changedText } from './changed-text.ts';

export interface Changes {
  readonly list: readonly Change[];
  /** How many more there were. */
  readonly leftOut: number;
}

/** Changes of one policy that are shown. */
export const MAX_CHANGES = 50;

/** The request before and after a policy. */
export interface Step {
  readonly before: Mapping;
  readonly after: Mapping;
}

type Visit = (path: Path, before: unknown, after: unknown) => void;

/**
 * The changes of each step. `secrets`: those of the request as it came; those that policies added are found. Costs one look at each value,
 * and a search for secrets in those that changed.
 */
export function changesOf(steps: readonly Step[], secrets: SecretValues): Changes[] {
  const found = steps.map(({ before, after }) => {
    const shown: (() => Change)[] = [];
    let count = 0;
    compare([], before, after, (path, old, now) => {
      count += 1;
      const from = old === undefined ? undefined : secrets.shownAt(before, path);
      const to = now === undefined ? undefined : secrets.shownAt(after, path);
      if (shown.length < MAX_CHANGES) {
        const place = [...path];
        shown.push(() => changedText(place, from, to, secrets));
      }
    });
    return { shown, count };
  });
  // Only now are all secrets known.
  return found.map(({ shown, count }) => ({
    list: shown.map((one) => one()),
    leftOut: count - shown.length,
  }));
}

/** Calls `visit` with each scalar, and each empty list or mapping, that differs; `undefined` = there is none. */
function compare(path: (string | number)[], before: unknown, after: unknown, visit: Visit): void {
  if (Array.isArray(before) && Array.isArray(after)) {
    compareLists(path, before, after, visit);
  } else if (isMapping(before) && isMapping(after)) {
    for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
      compareAt(name, path, member(before, name), member(after, name), visit);
    }
  } else if (hasParts(before) || hasParts(after)) {
    visitLeaves(path, before, (where, leaf) => visit(where, leaf, undefined));
    visitLeaves(path, after, (where, leaf) => visit(where, undefined, leaf));
  } else if (!Object.is(before, after)) {
    visit(path, before, after);
  }
}

function compareAt(
  step: string | number,
  path: (string | number)[],
  before: unknown,
  after: unknown,
  visit: Visit,
): void {
  path.push(step);
  compare(path, before, after, visit);
  path.pop();
}

/** What stands the same at the beginning and the end is no change; items between are compared by position. */
function compareLists(
  path: (string | number)[],
  before: readonly unknown[],
  after: readonly unknown[],
  visit: Visit,
): void {
  const least = Math.min(before.length, after.length);
  let start = 0;
  while (start < least && isDeepStrictEqual(before[start], after[start])) {
    start += 1;
  }
  let end = 0;
  while (end < least - start && isDeepStrictEqual(before.at(-1 - end), after.at(-1 - end))) {
    end += 1;
  }
  const most = Math.max(before.length, after.length) - end;
  for (let position = start; position < most; position += 1) {
    const old = position < before.length - end ? before[position] : undefined;
    const now = position < after.length - end ? after[position] : undefined;
    compareAt(position, path, old, now, visit);
  }
}

function hasParts(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0;
}

function visitLeaves(
  path: (string | number)[],
  value: unknown,
  visit: (path: Path, leaf: unknown) => void,
): void {
  if (value === undefined) {
    return;
  }
  if (typeof value !== 'object' || value === null || !hasParts(value)) {
    visit(path, value);
    return;
  }
  const parts: [string | number, unknown][] = Array.isArray(value)
    ? value.map((item, position) => [position, item])
    : Object.entries(value);
  for (const [step, part] of parts) {
    path.push(step);
    visitLeaves(path, part, visit);
    path.pop();
  }
}
