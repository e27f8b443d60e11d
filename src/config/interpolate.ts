/**
 * Replaces `$name`, `${name}`, `${group.name}` and `$$` in values, as oslo.config does (`cfg.py`; PEP 292 with dots in names).
 * A name without a group is looked up in the same section first, then in `[DEFAULT]`.
 */

/** The text of an option that another one refers to. `secret`: it must not be shown. */
export interface Reference {
  readonly text: string;
  readonly secret: boolean;
}

/** The effective text of an option; `undefined` when there is no such option. May throw an `Error`. */
export type Lookup = (section: string, option: string) => Reference | undefined;

/**
 * The text with its references replaced. A `$` that no name follows stays as it is. Throws an `UnknownReferenceError` for an
 * option that is not set, as oslo.config does: a URL with a part missing would be of no use.
 */
export function interpolate(text: string, section: string, lookup: Lookup): Reference {
  let secret = false;
  const replaced = text
    .replaceAll('\\$', '$$$$')
    .replace(/\$(?:(\$)|([_a-z][._a-z0-9]*)|\{([_a-z][._a-z0-9]*)\})/gi, (_, dollar, bare, braced) => {
      if (dollar !== undefined) {
        return '$';
      }
      const reference = find(String(bare ?? braced), section, lookup);
      secret ||= reference.secret;
      return reference.text;
    });
  return { text: replaced, secret };
}

function find(name: string, section: string, lookup: Lookup): Reference {
  const dot = name.indexOf('.');
  const reference =
    dot === -1
      ? (lookup(section, name) ?? lookup('default', name))
      : lookup(name.slice(0, dot).toLowerCase(), name.slice(dot + 1));
  if (reference === undefined) {
    throw new UnknownReferenceError(name);
  }
  return reference;
}

/** A `$name` of an option that is not set. The name may be part of a secret: the caller decides whether to show it. */
export class UnknownReferenceError extends Error {
  override readonly name = 'UnknownReferenceError';
  readonly reference: string;

  constructor(reference: string) {
    super(`$${reference} refers to an option that is not set`);
    this.reference = reference;
  }
}
