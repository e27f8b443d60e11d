/** Describes mistakes in expressions, for operators. */
import { ParseError, TypeError as TypingError } from '@marcbachmann/cel-js';
import { nearestName } from '../../config/nearest.ts';
import { type RuleEnvironment, shortType } from './environment.ts';
import { checkedTypeOf, ExpressionMistake, loopOf, type Node, partsOf } from './syntax.ts';

/** The parser's names of tokens. */
const TOKENS: Readonly<Record<string, string>> = {
  EOF: 'the end',
  NUMBER: 'a number',
  STRING: 'a text',
  BOOLEAN: 'true or false',
  NULL: 'null',
  IDENTIFIER: 'a name',
  PLUS: '"+"',
  MINUS: '"-"',
  MULTIPLY: '"*"',
  DIVIDE: '"/"',
  MODULO: '"%"',
  EQ: '"=="',
  NE: '"!="',
  LT: '"<"',
  LE: '"<="',
  GT: '">"',
  GE: '">="',
  AND: '"&&"',
  OR: '"||"',
  NOT: '"!"',
  IN: '"in"',
  LPAREN: '"("',
  RPAREN: '")"',
  LBRACKET: '"["',
  RBRACKET: '"]"',
  LBRACE: '"{"',
  RBRACE: '"}"',
  DOT: '"."',
  COMMA: '","',
  COLON: '":"',
  QUESTION: '"?"',
  BYTES: 'bytes',
};

/** The mistake behind an error of the parser or the checker; `undefined` for other errors. */
export function mistakeOf(
  thrown: unknown,
  environment: RuleEnvironment,
  text = '',
): ExpressionMistake | undefined {
  if (thrown instanceof ExpressionMistake) {
    return thrown;
  }
  if (!(thrown instanceof ParseError || thrown instanceof TypingError)) {
    return undefined;
  }
  const { code, summary, range, node } = thrown;
  const part = node as Node | undefined;
  const offset = (code === 'no_such_key' ? part?.pos : undefined) ?? range?.start ?? 0;
  const words = code === 'unexpected_character' ? foreignWord(text, offset) : undefined;
  return new ExpressionMistake(words ?? wordsFor(code, summary, part, environment), offset);
}

/**
 * The mistake behind an error of the checker about an element of `[]` or `{}`: it has no type, so the checker
 * either finds several matching operators, which is an error without a class of its own, or reports the type
 * `undefined`.
 */
export function emptyLiteralMistake(thrown: unknown, ast: Node | undefined): ExpressionMistake | undefined {
  const empty = ast === undefined ? undefined : emptyLiteralIn(ast);
  if (
    empty === undefined ||
    !(thrown instanceof Error) ||
    !/ overlaps with |undefined/.test(thrown.message)
  ) {
    return undefined;
  }
  const written = empty.op === 'list' ? '[]' : '{}';
  return new ExpressionMistake(`the elements of ${written} have no type to compute with`, empty.start);
}

function emptyLiteralIn(node: Node): Node | undefined {
  if ((node.op === 'list' || node.op === 'map') && node.args.length === 0) {
    return node;
  }
  const loop = loopOf(node);
  const bodies = [loop?.condition, loop?.result].filter((one) => one !== undefined);
  for (const part of [...partsOf(node), ...bodies]) {
    const found = emptyLiteralIn(part);
    if (found !== undefined) {
      return found;
    }
  }
  return undefined;
}

export function missingAttribute(type: string, name: string, names: readonly string[]): string {
  return `${type} has no attribute "${name}"${elsewhere(name) || nearestName(name, names)}`;
}

function wordsFor(
  code: string,
  summary: string,
  node: Node | undefined,
  environment: RuleEnvironment,
): string {
  switch (code) {
    case 'unknown_variable': {
      const name = /: (.*)$/.exec(summary)?.[1] ?? '';
      const hint = elsewhere(name) || nearestName(name, environment.variableNames);
      return `nothing is called "${name}"${hint || '; put a text in quotes'}`;
    }
    case 'no_such_key':
      return unknownAttribute(summary, node, environment);
    case 'no_matching_overload':
      return unsuitedCall(summary, node, environment);
    case 'no_such_overload':
      return unsuitedOperator(shortType(summary));
    case 'expected_token':
    case 'unexpected_token':
      return summary
        .replace(/\b[A-Z]+\b/g, (token) => TOKENS[token] ?? token)
        .replace(/^Expected /, 'expected ')
        .replace(/^Unexpected token: /, 'did not expect ');
    case 'unexpected_character':
      return summary.endsWith(': =') ? 'compare with "==", not with "="' : lowered(summary);
    case 'reserved_identifier':
      return `CEL reserves the word ${summary.replace(/^.*: /, '')}`;
    case 'heterogeneous_list_element':
    case 'heterogeneous_map_key':
    case 'heterogeneous_map_value':
    case 'incompatible_ternary_branches':
      return lowered(shortType(summary));
    case 'invalid_logical_operand':
      return `expected true or false on both sides, got ${quotedType(summary)}`;
    case 'invalid_condition_type':
      return `expected true or false as the condition, got ${quotedType(summary)}`;
    case 'limit_exceeded':
      return 'the expression is too large';
    default:
      return lowered(shortType(summary));
  }
}

function unknownAttribute(summary: string, node: Node | undefined, environment: RuleEnvironment): string {
  const name = /: (.*)$/.exec(summary)?.[1] ?? '';
  const base = node?.op === '.' || node?.op === '.?' || node?.op === '[]' ? node.args[0] : undefined;
  const type = base === undefined ? undefined : checkedTypeOf(base)?.replace(/^optional<(.*)>$/, '$1');
  const known = type === undefined ? undefined : environment.objectType(type);
  return known === undefined
    ? `there is no "${name}"`
    : missingAttribute(known.name, name, [...known.attributes.keys()]);
}

function unsuitedCall(summary: string, node: Node | undefined, environment: RuleEnvironment): string {
  const call = /'(?:(.*)\.)?(\w+)\((.*)\)'$/.exec(shortType(summary));
  const [, receiver, name = '', got = ''] = call ?? [];
  const isMethod = node?.op === 'rcall';
  const names = environment.functionNames(isMethod);
  if (!names.includes(name) && !['all', 'exists', 'exists_one', 'map', 'filter'].includes(name)) {
    const other = environment.functionNames(!isMethod).includes(name);
    return other
      ? `write ${isMethod ? `${name}(x)` : `x.${name}()`}, not ${isMethod ? `x.${name}()` : `${name}(x)`}`
      : `there is no function "${name}"${elsewhere(name) || nearestName(name, names)}`;
  }
  const signatures = environment.documentation.functions.filter((one) => one.name === name);
  const expected =
    signatures.length === 0 ? '' : `; expected ${signatures.map(({ type }) => type).join(' or ')}`;
  return `${name}() does not suit ${[...(receiver === undefined ? [] : [receiver]), ...(got === '' ? [] : [got])].join(', ') || 'nothing'}${expected}`;
}

function unsuitedOperator(summary: string): string {
  const operation = summary.replace(/^no such overload: /, '');
  if (operation === 'string in string') {
    return 'expected a list behind "in", got string; for a part of a text write text.contains(part)';
  }
  const hint = /\bint\b.*\bdouble\b|\bdouble\b.*\bint\b/.test(operation)
    ? '; write 2.0 instead of 2, or double(x)'
    : /\btimestamp\b/.test(operation) && /\b(?:string|int)\b/.test(operation)
      ? '; write timestamp("2026-12-20T00:00:00Z") for a time, duration("168h") for a length'
      : /\bduration\b/.test(operation)
        ? '; write duration("48h"), or hours(lease) <= 48.0'
        : '';
  return `${operation} cannot be computed${hint}`;
}

function quotedType(summary: string): string {
  return shortType(/'(.*)'$/.exec(summary)?.[1] ?? 'another type');
}

function lowered(text: string): string {
  return text.slice(0, 1).toLowerCase() + text.slice(1);
}

/** Words from other languages and habits, with corrections. */
const STRAIGHT = 'write straight quotes, "text", not curly ones';

const FOREIGN: Readonly<Record<string, string>> = {
  and: 'write "&&", not "and"',
  or: 'write "||", not "or"',
  not: 'write "!(x in list)" or "!=", not "not"',
  is: 'compare with "==", not with "is"',
  '“': STRAIGHT,
  '”': STRAIGHT,
  '‘': STRAIGHT,
  '’': STRAIGHT,
  ';': 'expected one expression, without ";" at its end',
};

/** The correction for the word at an offset of an expression. The parser may have read its first letters. */
function foreignWord(text: string, offset: number): string | undefined {
  const start = text.slice(0, offset).search(/\w*$/);
  const word = /^(?:\w+|[^\w\s])/.exec(text.slice(start, start + 40))?.[0]?.toLowerCase() ?? '';
  if (Object.hasOwn(FOREIGN, word)) {
    return FOREIGN[word];
  }
  return /^\d+[a-z]+$/.test(word)
    ? 'write a length of time as duration("48h") or duration("90m"), and days in hours'
    : undefined;
}

/** Names that users expect, with corrections. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  current: 'only updates have it: write on: update',
  duration: 'write hours(lease) for the length of a lease',
  length: 'write hours(lease) for the length of a lease',
  days: 'write hours(lease), and 48.0 for two days',
  project: 'write context.project',
  project_id: 'write context.project_id',
  project_name: 'write context.project.name',
  user: 'write context.user',
  user_id: 'write context.user_id',
  user_name: 'write context.user.name',
  gpu: 'write property(r, "gpu") for a property of machines',
  len: 'write size(list)',
  not: 'write "!(…)", not "not (…)"',
  None: 'write null, or has(x.y) to ask whether there is one',
};

/** `; write …` after an unknown name; otherwise empty. */
function elsewhere(name: string): string {
  return Object.hasOwn(ELSEWHERE, name) ? `; ${ELSEWHERE[name]}` : '';
}
