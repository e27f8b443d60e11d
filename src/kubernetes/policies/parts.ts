/** Lists the parts of a merged policy, each with the policy that it comes from. */
import { isMapping, type Path } from '../../yaml/tree.ts';
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

/** Lists and empty mappings are one part: an empty mapping means everything. */
function leaves(value: unknown, path: Path): Omit<Part, 'policy'>[] {
  const members = isMapping(value) ? Object.entries(value) : [];
  if (members.length === 0) {
    // An empty section has no parts.
    return path.length === 1 ? [] : [{ path, value }];
  }
  return members.flatMap(([name, member]) => leaves(member, [...path, name]));
}
