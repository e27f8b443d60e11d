/** What policies say together, one part after the other, each with the policy that it is from. */
import { isMapping, type Path } from '../yaml/tree.ts';
import type { MergedPolicy } from './merge.ts';

export interface Part {
  /** `required`, `nodeSelectors`, `disk` */
  readonly path: Path;
  readonly value: unknown;
  readonly policy: string;
}

export function partsOf(merged: MergedPolicy): Part[] {
  const sourced = (section: 'required' | 'default') =>
    leaves(merged[section], [section]).map(({ path, value }) => ({
      path,
      value,
      policy: merged.sourceOf(...path.map(String)),
    }));
  return [
    ...sourced('required'),
    ...merged.allowed.flatMap(({ policy, allowed }) =>
      leaves(allowed, ['allowed']).map((leaf) => ({ ...leaf, policy })),
    ),
    ...sourced('default'),
  ];
}

/** A list is one part, and so is a mapping that is empty: it means everything. */
function leaves(value: unknown, path: Path): Omit<Part, 'policy'>[] {
  const members = isMapping(value) ? Object.entries(value) : [];
  if (members.length === 0) {
    // A section that says nothing is no part.
    return path.length === 1 ? [] : [{ path, value }];
  }
  return members.flatMap(([name, member]) => leaves(member, [...path, name]));
}
