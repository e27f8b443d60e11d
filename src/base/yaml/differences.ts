/**
 * Refuses texts that PyYAML and the `yaml` package read differently without an error: SkyPilot must see what
 * is checked here. The differences were found by reading random texts with both.
 */
import { isAlias, isMap, isScalar, isSeq, type Node, Scalar } from 'yaml';
import { Special } from './dialect.ts';
import { asNode } from './nodes.ts';
import { YamlError } from './tree.ts';

/**
 * Characters that PyYAML refuses, or that end a line only in PyYAML: it would parse the rest of a comment.
 * They can be written as escapes in double quotes.
 */
const UNREADABLE =
  /[^\t\n\r -~\u{a0}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]|[\u2028\u2029]|\r(?!\n)|(?!^)\ufeff/u;

/** PyYAML requires a key's colon within this length. */
const MAX_KEY = 1024;

/** @throws YamlError for a text with such a character. */
export function refuseUnreadable(text: string): void {
  const found = UNREADABLE.exec(text);
  if (found !== null) {
    const line = text.slice(0, found.index).split('\n').length;
    throw new YamlError('a control character or an unusual line break, which must be escaped', line);
  }
}

/** `lineAt` = the line of an offset. @throws YamlError for a document with an ambiguous node. */
export function refuseAmbiguous(root: Node, lineAt: (offset: number) => number): void {
  const check = (node: Node, isInFlow: boolean, isKey: boolean): void => {
    const reason = isScalar(node) && isInFlow ? ambiguityInFlow(node, isKey) : ambiguityOf(node);
    if (reason !== undefined) {
      throw new YamlError(reason, lineAt(node.range?.[0] ?? 0));
    }
    if (isMap(node)) {
      const isFlow = node.flow === true;
      // Checked here: in the value, `~` and `null` have different names.
      if (node.items.filter(({ key }) => isNull(asNode(key))).length > 1) {
        throw new YamlError('a mapping with two names that are null', lineAt(node.range?.[0] ?? 0));
      }
      for (const { key, value } of node.items) {
        checkPart(key, isFlow, true);
        checkPart(value, isFlow, false);
      }
    } else if (isSeq(node)) {
      for (const item of node.items) {
        checkPart(item, node.flow === true, false);
      }
    }
  };
  const checkPart = (part: unknown, isInFlow: boolean, isKey: boolean): void => {
    const node = asNode(part);
    if (node !== null) {
      check(node, isInFlow, isKey);
    }
  };
  check(root, false, false);
}

/** For nodes in flow collections, `[…]` and `{…}`. */
function ambiguityInFlow(node: Scalar, isKey: boolean): string | undefined {
  if (node.type === Scalar.PLAIN && node.source?.startsWith('?')) {
    return 'an unquoted text between brackets begins with "?"';
  }
  const [start = 0, end = 0] = node.range ?? [];
  return isKey && end - start > MAX_KEY
    ? `a key between brackets has more than ${MAX_KEY} characters`
    : ambiguityOf(node);
}

function ambiguityOf(node: Node): string | undefined {
  const name = isAlias(node) ? node.source : (node as { anchor?: string }).anchor;
  if (name !== undefined && /[^\w-]/.test(name)) {
    return 'an anchor has characters in its name other than letters, digits, "-" and "_"';
  }
  return node.tag === undefined || isOfTag(node, node.tag)
    ? undefined
    : 'a tag does not match the value after it';
}

/** Whether a tag matches the type that was read. */
function isOfTag(node: Node, tag: string): boolean {
  switch (tag.replace('tag:yaml.org,2002:', '!!')) {
    case '!!map':
    case '!!set':
      return isMap(node);
    case '!!seq':
    case '!!omap':
    case '!!pairs':
      return isSeq(node);
    case '!!str':
    case '!!binary':
      return isScalar(node) && typeof node.value === 'string';
    case '!!timestamp':
      return isScalar(node) && node.value instanceof Special;
    case '!!null':
      return isScalar(node) && node.value === null;
    case '!!bool':
      return isScalar(node) && typeof node.value === 'boolean';
    case '!!int':
    case '!!float':
      return isScalar(node) && (typeof node.value === 'number' || typeof node.value === 'bigint');
    default:
      return false;
  }
}

function isNull(key: Node | null): boolean {
  return key === null || (isScalar(key) && key.value === null);
}
