/**
 * The requirements of a reservation on its machines: `["and", ["==", "$gpu", "True"], [">=", "$vcpus", "16"]]`.
 * Source: Blazar, `plugins_utils.convert_requirements`.
 */

const OPERATORS = ['==', '!=', '>=', '<=', '>', '<'] as const;

const NESTED: readonly unknown[] = ['and', 'or', 'not'];

/** Blazar joins the three with blanks, and later splits them at blanks. */
const PROPERTY = /^\$[^\s]+$/;

/** Real requirements have up to ten. */
const MAX_COMPARISONS = 100;
const MAX_LENGTH = 65_536;

export type PropertyOperator = (typeof OPERATORS)[number];

/** One comparison of a property, named without its `$`, with a value. */
export interface PropertyRequirement {
  readonly name: string;
  readonly operator: PropertyOperator;
  readonly value: string;
}

/**
 * Parses the requirements of a reservation; all must be met. A missing value, an empty text and an empty list
 * mean no requirements. Throws an `Error` that completes "resource_properties: …" for input that Blazar
 * refuses, and for input that it misreads: of a nested `and`, it uses only the first comparison.
 */
export function parseResourceProperties(written: unknown): PropertyRequirement[] {
  if (written === undefined || written === null || written === '') {
    return [];
  }
  if (typeof written === 'string' && written.length > MAX_LENGTH) {
    throw new Error(`expected at most ${MAX_LENGTH} characters`);
  }
  const expression = typeof written === 'string' ? parsed(written) : written;
  if (!Array.isArray(expression)) {
    throw new Error('expected a list in JSON such as ["==", "$gpu", "True"]');
  }
  if (expression.length === 0) {
    return [];
  }
  if (expression[0] !== 'and') {
    return [requirement(expression)];
  }
  if (expression.length === 1) {
    throw new Error('expected something behind "and"');
  }
  if (expression.length > MAX_COMPARISONS + 1) {
    throw new Error(`expected at most ${MAX_COMPARISONS} comparisons`);
  }
  return expression.slice(1).map(requirement);
}

/** The requirements as a text that Blazar parses. */
export function formatResourceProperties(requirements: readonly PropertyRequirement[]): string {
  const lists = requirements.map(({ name, operator, value }) => [operator, `$${name}`, value]);
  const [only, ...others] = lists;
  return JSON.stringify(only === undefined ? [] : others.length === 0 ? only : ['and', ...lists]);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error('expected a list in JSON such as ["==", "$gpu", "True"]');
  }
}

function requirement(expression: unknown): PropertyRequirement {
  if (Array.isArray(expression) && NESTED.includes(expression[0])) {
    throw new Error(`expected no "${expression[0]}" there: Blazar reads one "and" around comparisons`);
  }
  if (!Array.isArray(expression) || expression.length !== 3) {
    throw new Error('expected comparisons of three texts such as ["==", "$gpu", "True"]');
  }
  const [written, property, value] = expression as unknown[];
  const operator = OPERATORS.find((one) => one === (written === '=' ? '==' : written));
  if (operator === undefined) {
    throw new Error(`expected one of =, ${OPERATORS.join(', ')} as the first of three`);
  }
  if (typeof property !== 'string' || !PROPERTY.test(property)) {
    throw new Error('expected a property such as $gpu, without blanks, as the second of three');
  }
  if (typeof value !== 'string' || value === '') {
    throw new Error('expected a text that is not empty as the third of three');
  }
  return { name: property.slice(1), operator, value };
}
