/** Where a character of a text is written in YAML: quoted, folded and indented texts are written otherwise than they are read. */
import { isScalar, type Node, Scalar } from 'yaml';

/** Longest first. The other escapes have one character. */
const ESCAPE_LENGTHS: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };

/**
 * The place of a character within `written`, where the node begins at `start`. Counts the characters that are not blank, since they are the
 * same in what is written and what is read, but for quotes and escapes.
 */
export function writtenOffset(written: string, start: number, node: Node, offset: number): number {
  if (!isScalar(node) || typeof node.value !== 'string') {
    return start;
  }
  const wanted = node.value.slice(0, offset);
  const before = wanted.replace(/\s/g, '').length;
  const isAfterBlank = wanted === '' || /\s$/.test(wanted);
  const end = node.range?.[1] ?? start;
  let place = contentStart(written, start, end, node);
  let seen = 0;
  while (place < end) {
    const step = unitAt(written, place, node);
    if (!step.isBlank) {
      if (seen === before && (isAfterBlank || before === 0)) {
        return place;
      }
      seen += 1;
    }
    if (seen === before && !isAfterBlank) {
      return place + step.length;
    }
    place += step.length;
  }
  return place;
}

function contentStart(written: string, start: number, end: number, node: Scalar): number {
  switch (node.type) {
    case Scalar.QUOTE_DOUBLE:
    case Scalar.QUOTE_SINGLE:
      return start + 1;
    case Scalar.BLOCK_LITERAL:
    case Scalar.BLOCK_FOLDED: {
      const line = written.indexOf('\n', start);
      return line < 0 ? end : line + 1;
    }
    default:
      return start;
  }
}

/** One character of the text as it is read, or a blank. */
function unitAt(written: string, place: number, node: Scalar): { length: number; isBlank: boolean } {
  const character = written.charAt(place);
  if (node.type === Scalar.QUOTE_SINGLE && character === "'") {
    return { length: 2, isBlank: false };
  }
  if (node.type === Scalar.QUOTE_DOUBLE && character === '\\') {
    const code = written.charAt(place + 1);
    return {
      length: 2 + (ESCAPE_LENGTHS[code] ?? 0),
      isBlank: /[\sabtnvfreNLP_0]/.test(code) && !/[abe0]/.test(code),
    };
  }
  return { length: 1, isBlank: /\s/.test(character) };
}
