/** Resource types that an expression names. One that does not exist makes a rule that looks right, and judges nothing. */
import { loopOf, type Node, partsOf } from '../cel/syntax.ts';

export interface NamedType {
  readonly text: string;
  /** Of its first character, from 0. */
  readonly offset: number;
}

/** Constants in `size(lease, "…")`, and those that `resource_type` is compared with. */
export function namedTypes(node: Node): NamedType[] {
  const loop = loopOf(node);
  const inner = [loop?.condition, loop?.result].flatMap((one) => one ?? []);
  return [...ownTypes(node), ...[...partsOf(node), ...inner].flatMap(namedTypes)];
}

function ownTypes(node: Node): NamedType[] {
  switch (node.op) {
    case 'call': {
      const [name, written] = node.args;
      return name === 'size' && written.length === 2 ? textsOf(written[1]) : [];
    }
    case '==':
    case '!=':
    case 'in': {
      const [one, other] = node.args;
      return [...(isType(one) ? textsOf(other) : []), ...(isType(other) ? textsOf(one) : [])];
    }
    default:
      return [];
  }
}

function isType(node: Node): boolean {
  return node.op === '.' && node.args[1] === 'resource_type';
}

function textsOf(node: Node | undefined): NamedType[] {
  if (node?.op === 'list') {
    return node.args.flatMap(textsOf);
  }
  return node?.op === 'value' && typeof node.args === 'string'
    ? [{ text: node.args, offset: node.start }]
    : [];
}
