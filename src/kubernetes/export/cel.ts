/**
 * Expressions of CEL, the Common Expression Language, simplified while they are built.
 * Source: the CEL specification, "Syntax".
 */

/** How tightly the outermost operator binds. */
const RANK = { atom: 0, relation: 1, and: 2, or: 3, conditional: 4 } as const;

export interface Cel {
  readonly text: string;
  readonly rank: number;
}

export const TRUE: Cel = { text: 'true', rank: RANK.atom };
export const FALSE: Cel = { text: 'false', rank: RANK.atom };

/** A name, a call, a literal or a field. */
export function atom(text: string): Cel {
  return { text, rank: RANK.atom };
}

export function relation(text: string): Cel {
  return { text, rank: RANK.relation };
}

export function constant(value: boolean): Cel {
  return value ? TRUE : FALSE;
}

export function isTrue({ text }: Cel): boolean {
  return text === TRUE.text;
}

export function isFalse({ text }: Cel): boolean {
  return text === FALSE.text;
}

/** All of them. Equal ones are written once. */
export function and(...all: readonly Cel[]): Cel {
  return all.some(isFalse)
    ? FALSE
    : joined(
        all.filter((one) => !isTrue(one)),
        '&&',
        RANK.and,
        TRUE,
      );
}

/** One of them. Equal ones are written once. */
export function or(...all: readonly Cel[]): Cel {
  return all.some(isTrue)
    ? TRUE
    : joined(
        all.filter((one) => !isFalse(one)),
        '||',
        RANK.or,
        FALSE,
      );
}

export function not(one: Cel): Cel {
  if (isTrue(one) || isFalse(one)) {
    return constant(isFalse(one));
  }
  return atom(`!${within(one, RANK.atom)}`);
}

/** `condition ? then : otherwise` */
export function choose(condition: Cel, then: Cel, otherwise: Cel): Cel {
  if (isTrue(condition) || then.text === otherwise.text) {
    return then;
  }
  if (isFalse(condition)) {
    return otherwise;
  }
  if (isTrue(then)) {
    return or(condition, otherwise);
  }
  if (isFalse(then)) {
    return and(not(condition), otherwise);
  }
  if (isFalse(otherwise)) {
    return and(condition, then);
  }
  if (isTrue(otherwise)) {
    return or(not(condition), then);
  }
  const text = `${within(condition, RANK.or)} ? ${within(then, RANK.or)} : ${otherwise.text}`;
  return { text, rank: RANK.conditional };
}

/** Whether each item of a list, or each key of a map, satisfies the condition. `of` is an atom. */
export function every(of: string, name: string, condition: Cel): Cel {
  return isTrue(condition) ? TRUE : atom(`${of}.all(${name}, ${condition.text})`);
}

export function some(of: string, name: string, condition: Cel): Cel {
  return isFalse(condition) ? FALSE : atom(`${of}.exists(${name}, ${condition.text})`);
}

export function equals(left: string, text: string): Cel {
  return relation(`${left} == ${literal(text)}`);
}

/** Whether a value is one of these texts. */
export function isOneOf(value: string, texts: Iterable<string>): Cel {
  const [first, second] = texts;
  if (first === undefined) {
    return FALSE;
  }
  return second === undefined ? equals(value, first) : relation(`${value} in ${listOf(texts)}`);
}

export function listOf(texts: Iterable<string>): string {
  return `[${[...texts].map(literal).join(', ')}]`;
}

/** Everything that could end a literal, start a line or be invisible. */
const ESCAPED = /[^ -&(-[\]-~]/gu;
/** Half a letter is no text: nothing in a cluster can equal it. */
const HALF = /\p{Cs}/gu;

/** A text as a literal of printable ASCII, which means the same wherever it is put. */
export function literal(text: string): string {
  return `'${text.replace(HALF, '\ufffd').replace(ESCAPED, escaped)}'`;
}

function escaped(character: string): string {
  if (character === "'" || character === '\\') {
    return `\\${character}`;
  }
  const code = (character.codePointAt(0) ?? 0).toString(16);
  return code.length > 4 ? `\\U${code.padStart(8, '0')}` : `\\u${code.padStart(4, '0')}`;
}

/**
 * Plain data as a literal. All of it is `dyn`, because lists and maps of one type only are allowed in Kubernetes.
 */
export function dataLiteral(value: unknown): string {
  if (Array.isArray(value)) {
    return `dyn([${value.map(dataLiteral).join(', ')}])`;
  }
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).map(([name, one]) => `${literal(name)}: ${dataLiteral(one)}`);
    return `dyn({${entries.join(', ')}})`;
  }
  return `dyn(${typeof value === 'string' ? literal(value) : JSON.stringify(value)})`;
}

function joined(parts: readonly Cel[], operator: string, rank: number, none: Cel): Cel {
  const texts = [...new Set(parts.map((one) => within(one, rank)))];
  const [first] = parts;
  if (first === undefined) {
    return none;
  }
  return texts.length === 1 ? first : { text: texts.join(` ${operator} `), rank };
}

/** In parentheses, if the place binds more tightly, or for readers: `a || (b && c)`. */
function within({ text, rank }: Cel, place: number): string {
  return rank > place || (rank === RANK.and && place === RANK.or) ? `(${text})` : text;
}
