/** Functions for expressions, and maximum sizes of values, the basis of estimates. */
import type { Frame } from './frame.ts';

/** An upper bound of a value. */
export interface Shape {
  /** Maximum length of a text, in UTF-16 code units. */
  readonly text: number;
  /** Maximum number of elements of a list, or entries of a map. */
  readonly items: number;
  /** An element of the list, or a value of the map. */
  readonly item?: Shape | undefined;
  /** Attributes of an object, by name. */
  readonly attributes?: ReadonlyMap<string, Shape> | undefined;
  /** Steps to compare the value as a whole. */
  readonly weight: number;
  /** The elements are objects that occur once each: the `total` of attributes applies to a loop over them. */
  readonly isDistinct?: boolean;
  /** `total`: elements in the lists of this attribute of all objects in a list; `objects`: their number. */
  readonly shared?: { readonly total: number; readonly objects: number } | undefined;
}

/** Length of ids and names. Keystone's and Blazar's have at most 255 characters. */
export const USUAL_TEXT = 255;
/** Size of lists and maps without their own limit. */
export const USUAL_ITEMS = 100;

export const SCALAR: Shape = { text: 0, items: 0, weight: 1 };
export const TEXT: Shape = textShape(USUAL_TEXT);
/** A part of the request of unknown type. */
export const ANYTHING: Shape = anything();

export function textShape(length: number): Shape {
  return { text: length, items: 0, weight: 1 + Math.ceil(length / 16) };
}

export function listShape(items: number, item: Shape): Shape {
  return { text: 0, items, item, weight: 1 + items * (1 + item.weight) };
}

/** A value that may be either. */
export function eitherShape(a: Shape, b: Shape): Shape {
  if (a === b) {
    return a;
  }
  const item = a.item === undefined ? b.item : b.item === undefined ? a.item : eitherShape(a.item, b.item);
  return {
    text: Math.max(a.text, b.text),
    items: Math.max(a.items, b.items),
    item,
    attributes: a.attributes ?? b.attributes,
    weight: Math.max(a.weight, b.weight),
  };
}

function anything(): Shape {
  const shape: { -readonly [name in keyof Shape]: Shape[name] } = {
    text: USUAL_TEXT,
    items: USUAL_ITEMS,
    weight: 2 * USUAL_ITEMS,
  };
  shape.item = shape;
  return shape;
}

/** Maximum cost of a call in addition to its arguments, and its result. */
export interface CallEstimate {
  readonly steps: number;
  readonly shape: Shape;
}

export interface CelFunction {
  /**
   * Returns a value or a `Failure`. Thrown errors are failures, too. Spends the steps that the sizes of its
   * arguments cause, never more than `estimate` returns. The receiver of a method is the first argument.
   */
  readonly run: (frame: Frame, ...args: unknown[]) => unknown;
  /** Default: a step, and a value without a size. `prepared`: the result of `prepare` for a constant. */
  readonly estimate?: (sizes: readonly Shape[], prepared: unknown) => CallEstimate;
  /** Arguments that must be constants, because they are prepared when the rules are loaded. */
  readonly constants?: readonly number[];
  /** Throws for an unusable constant. Called when the rules are loaded. */
  readonly prepare?: (constant: unknown) => unknown;
  /** Why these constants (`undefined` = not a constant) are invalid. Called when the rules are loaded. */
  readonly refuse?: (constants: readonly unknown[]) => string | undefined;
  /** The result depends on the ledger: it is evaluated again in the transaction that records the lease. */
  readonly readsLedger?: boolean;
}

export const CHEAP: CallEstimate = { steps: 1, shape: SCALAR };

/** The key of a function in a table: `size/1`, or `.size/1` for a method; its receiver is not counted. */
export function functionKey(name: string, parameters: number, isMethod: boolean): string {
  return `${isMethod ? '.' : ''}${name}/${parameters}`;
}
