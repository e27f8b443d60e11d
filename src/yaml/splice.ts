/**
 * Writes what has changed into the text of a document, and leaves every other character as it is. For texts that `dumped-text.ts` has
 * read: each entry of their collections begins in a line of its own, or behind the dash of an item.
 */
import { type Node, Pair, YAMLMap, YAMLSeq } from 'yaml';
import { asNode, originOf } from './edit.ts';

type Collection = YAMLMap | YAMLSeq;

/** Writes a node as a document. */
type Print = (node: Node | null) => string;

/** The text with `root` in the place of `before`, from which it was made by `edited`. */
export function spliced(text: string, before: Node | null, root: Node | null, print: Print): string {
  if (!isBlock(root) || !isBlock(before) || originOf(root) !== before) {
    return print(root);
  }
  const written = new Splice(text, print).written(root, before);
  const rest = text.slice(endOf(before));
  // Behind a block text, blank lines would belong to it, and its last line needs an end.
  return written + (written.endsWith('\n') || rest === '' ? '\n' : rest);
}

class Splice {
  readonly #text: string;
  readonly #print: Print;

  constructor(text: string, print: Print) {
    this.#text = text;
    this.#print = print;
  }

  /** A changed collection in the column of the one that it was made from, without the end of its last line. */
  written(collection: Collection, before: Collection): string {
    const column = startOf(before) - this.#text.lastIndexOf('\n', startOf(before) - 1) - 1;
    const margin = `\n${' '.repeat(column)}`;
    const positions = new Map(before.items.map((entry, position) => [identityOf(entry), position]));
    let written = '';
    for (const entry of collection.items) {
      const position = positions.get(identityOf(entry));
      if (written !== '') {
        const kept = position !== undefined && position > 0 && !written.endsWith('\n');
        written += kept ? this.#between(before.items[position - 1], before.items[position]) : margin;
      }
      written +=
        position === undefined
          ? this.#printed(entry, margin)
          : this.#entry(entry, before.items[position], margin);
    }
    return written;
  }

  /** The line end, blank lines and indentation between two entries. */
  #between(one: unknown, next: unknown): string {
    return this.#text.slice(endOf(valueIn(one)), entryStart(next));
  }

  #entry(entry: unknown, before: unknown, margin: string): string {
    const [value, old] = [valueIn(entry), valueIn(before)];
    if (value === old) {
      return this.#text.slice(entryStart(before), endOf(old));
    }
    return isBlock(value) && isBlock(old) && originOf(value) === old
      ? this.#text.slice(entryStart(before), startOf(old)) + this.written(value, old)
      : this.#printed(entry, margin);
  }

  #printed(entry: unknown, margin: string): string {
    const collection = entry instanceof Pair ? new YAMLMap() : new YAMLSeq();
    collection.items = [entry] as Collection['items'];
    // A blank line before it stands in the text already.
    const lines = this.#print(collection).replace(/^\n+|\n$/g, '');
    return lines.replace(/\n(?!\n|$)/g, margin);
  }
}

/** What a changed entry has in common with the one before. */
function identityOf(entry: unknown): unknown {
  return entry instanceof Pair ? entry.key : (originOf(entry) ?? entry);
}

function valueIn(entry: unknown): Node | null {
  return asNode(entry instanceof Pair ? entry.value : entry);
}

function isBlock(node: Node | null): node is Collection {
  return (node instanceof YAMLMap || node instanceof YAMLSeq) && node.items.length > 0 && node.flow !== true;
}

/** Of its key, or of its dash: exactly one blank follows. */
function entryStart(entry: unknown): number {
  return entry instanceof Pair ? startOf(asNode(entry.key)) : startOf(asNode(entry)) - DASH.length;
}

const DASH = '- ';

function startOf(node: Node | null): number {
  return node?.range?.[0] ?? 0;
}

function endOf(node: Node | null): number {
  return node?.range?.[1] ?? 0;
}
