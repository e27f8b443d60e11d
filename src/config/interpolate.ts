/**
 * Replaces `$name`, `${name}`, `${group.name}` and `$$` in values, as oslo.config does (`cfg.py`; PEP 292 with dots in names).
 * A name without a group is looked up in the same section first, then in `[DEFAULT]`.
 */
import { isMapping } from '../base/yaml/tree.ts';
import type { Entry, Layer } from './layer.ts';
import type { Option } from './option.ts';
import { systemErrorText } from './read-file.ts';
import { valueText } from './text.ts';
import { ValueError } from './typed.ts';

/** The text of an option that another option refers to. `secret`: it must not be shown. */
interface Reference {
  readonly text: string;
  readonly secret: boolean;
}

/** The effective text of an option; `undefined` = no such option. May throw an `Error`. */
export type Lookup = (section: string, option: string) => Reference | undefined;

/**
 * The text with its references replaced. A `$` without a name stays. Throws an `UnknownReferenceError` for an
 * option that is not set, as oslo.config does: a URL with a missing part would be useless.
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

/** Bounds chains of references that double at each step (`a = $b$b`) and would fill the memory. */
const MAX_REFERENCES = 10_000;

/** Looks up the value of `$name`. It may contain references; a circular one is a mistake. */
export function textLookup(layers: readonly Layer[], options: readonly Option[]) {
  const visiting = new Set<string>();
  let count = 0;
  const lookup = (section: string, name: string): Reference | undefined => {
    count += 1;
    if (count > MAX_REFERENCES) {
      throw new ValueError('the configuration has too many references to other options');
    }
    const option = options.find((candidate) => candidate.section === section && candidate.name === name);
    const [entry] = entriesOf(layers, section, name);
    if (entry === undefined) {
      return option && { text: valueText(option.default), secret: option.secret };
    }
    const id = `${section}.${name}`;
    if (visiting.has(id)) {
      throw new ValueError(`$${name} refers to itself`);
    }
    visiting.add(id);
    try {
      if (isMapping(entry.value)) {
        throw new ValueError(`$${name} cannot be used here: it is a mapping`);
      }
      const text = valueText(entry.value);
      const reference =
        entry.origin.kind === 'code' ? { text, secret: false } : interpolate(text, section, lookup);
      return { text: reference.text, secret: reference.secret || option?.secret === true };
    } catch (thrown) {
      // The name after the "$" may be part of a secret, and is reported with that option.
      throw thrown instanceof UnknownReferenceError
        ? new ValueError(`$${name} has no value: it refers to an option that is not set`)
        : thrown;
    } finally {
      visiting.delete(id);
    }
  };
  return lookup;
}

/** The entries of an option in all layers, highest first. */
export function entriesOf(layers: readonly Layer[], section: string, option: string): Entry[] {
  return layers.flatMap((layer) => layer.get(section)?.get(option) ?? []).reverse();
}

/**
 * The value with the references in its texts replaced. Values from code are literal: a "$" in a token is no
 * reference.
 */
export function replaced(
  { value, origin }: Entry,
  section: string,
  lookup: ReturnType<typeof textLookup>,
): { value: unknown; secret: boolean } {
  let secret = false;
  const replace = (one: unknown): unknown => {
    if (typeof one === 'string') {
      const reference = interpolate(one, section, lookup);
      secret ||= reference.secret;
      return reference.text;
    }
    if (Array.isArray(one)) {
      return one.map(replace);
    }
    return isMapping(one)
      ? Object.fromEntries(Object.entries(one).map(([name, item]) => [name, replace(item)]))
      : one;
  };
  return { value: origin.kind === 'code' ? value : replace(value), secret };
}

export function referenceText(thrown: unknown, secret: boolean): string {
  if (thrown instanceof UnknownReferenceError) {
    // In a secret the name after the "$" is part of the secret.
    const subject = secret ? 'a "$" in the value' : `"$${thrown.reference}"`;
    return `${subject} refers to an option that is not set; write "$$" for a dollar sign`;
  }
  return systemErrorText(thrown);
}
