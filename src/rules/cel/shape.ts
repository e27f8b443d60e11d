/** How large values may become: the ground of estimates. */

/** An upper bound of a value. */
export interface Shape {
  /** The longest text, in UTF-16 code units. */
  readonly text: number;
  /** The most elements of a list, or entries of a map. */
  readonly items: number;
  /** An element of the list, or a value of the map. */
  readonly item?: Shape | undefined;
  /** Of an object, by name. */
  readonly attributes?: ReadonlyMap<string, Shape> | undefined;
  /** The steps for comparing the value as a whole. */
  readonly weight: number;
  /** The elements are objects that occur once each, so that the `total` of their attributes holds for a loop over them. */
  readonly isDistinct?: boolean;
  /** The lists of this attribute of all objects in a list have so many elements together, and the list so many objects. */
  readonly shared?: { readonly total: number; readonly objects: number } | undefined;
}

/** Of ids and names. Keystone's and Blazar's have at most 255 characters. */
export const USUAL_TEXT = 255;
/** Of lists and maps without a limit of their own. */
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
