/**
 * Layers and options → one typed value per option, with its origin, and every problem. Nothing is thrown: the problems of all
 * sources are collected, so that an operator can fix them at once.
 */
import { distance } from 'fastest-levenshtein';
import type { Origin, Problem } from '../base/errors.ts';
import { isMapping, type Mapping } from '../yaml/tree.ts';
import { interpolate, type Reference, UnknownReferenceError } from './interpolate.ts';
import { type Entry, isYamlFile, type Layer } from './layer.ts';
import { generalRules, merge, type Placed } from './merge.ts';
import { checkNames, RESOURCE_TYPES } from './names.ts';
import type { Option } from './option.ts';
import { Provenance } from './provenance.ts';
import { systemErrorText } from './read-file.ts';
import { valueText } from './text.ts';
import { checkedValue, MismatchError, typedValue } from './typed.ts';
import { type UnloadedOptions, unknownNames } from './unknown-names.ts';
import { ValueError } from './value.ts';

/** Without it a chain of references that doubles at each step (`a = $b$b`) would fill the memory. */
const MAX_REFERENCES = 10_000;

/** The effective value of an option. */
export interface Setting {
  readonly option: Option;
  /** The output of the option's schema; `undefined` = not set. */
  readonly value: unknown;
  /** The input of the schema; `undefined` when it used its default. A schema may transform one into the other. */
  readonly input: unknown;
  readonly origin: Origin;
  /** The origins that this one overrides, the last one first. */
  readonly beats: readonly Origin[];
  /** For a dictionary from several sources: where each member comes from. */
  readonly members?: readonly Member[];
  /** The option is a secret, or its value refers to one. */
  readonly secret: boolean;
}

/** A member of a dictionary. */
export interface Member {
  readonly name: string;
  readonly origin: Origin;
  readonly beats: readonly Origin[];
}

export interface Resolution {
  /** In the order of the options. One with a wrong value has its default here, and a problem in `problems`. */
  readonly settings: readonly Setting[];
  readonly problems: readonly Problem[];
}

/** Resolves the options over the layers, lowest layer first. `resourceTypes`: the known ones. `unloaded`: options that may be right. */
export function resolve(
  layers: readonly Layer[],
  options: readonly Option[],
  resourceTypes: readonly string[] = RESOURCE_TYPES,
  unloaded: readonly UnloadedOptions[] = [],
): Resolution {
  const effectiveText = textLookup(layers, options);
  const problems: Problem[] = [];
  const settings = options.map((option) => {
    const entries = entriesOf(layers, option.section, option.name);
    const [entry] = entries;
    if (entry === undefined) {
      return unset(option, { kind: 'default' });
    }
    const { origin } = entry;
    const beats = entries.slice(1).map((beaten) => beaten.origin);
    let secret = option.secret;
    // A URL with a mistake may hold a key anywhere.
    const isHidden = () => secret || option.url;
    // An indented line may have been meant as an option of its own, and be a secret.
    const isContinued = entries.some(({ value }) => typeof value === 'string' && value.includes('\n'));
    let at: Entry | Merged = entry;
    try {
      const typed = entries.slice(0, wholeEntries(entries, option)).map((one) => {
        at = one;
        const swallowed = swallowedOption(one, options);
        if (swallowed !== undefined) {
          throw new MisplacedError(swallowed);
        }
        const reference = replaced(asText(one, option), option.section, effectiveText);
        secret ||= reference.secret;
        const value = typedValue(reference.value, option, isHidden(), one.origin.kind === 'code');
        return { entry: one, written: reference.value, value };
      });
      const [first] = typed;
      if (typed.length === 1) {
        const checked = checkedValue(first?.value, option, isHidden(), first?.written);
        checkNames(checked.value, option, { secret: isHidden(), isContinued }, resourceTypes);
        return {
          option,
          ...checked,
          origin,
          beats,
          secret,
        };
      }
      const merged = mergedDictionary(typed);
      at = { origin, members: new Map(merged.members.map((member) => [member.name, member.origin])) };
      const checked = checkedValue(merged.value, option, isHidden());
      checkNames(checked.value, option, { secret: isHidden(), isContinued }, resourceTypes);
      return { option, ...checked, origin, beats, members: merged.members, secret };
    } catch (thrown) {
      const member = thrown instanceof MismatchError ? thrown.member : undefined;
      const place = thrown instanceof MisplacedError ? thrown.place : undefined;
      problems.push({
        severity: 'error',
        origin: (member === undefined ? undefined : at.members?.get(member)) ?? at.origin,
        section: option.section,
        option: option.name,
        message: referenceText(thrown, isHidden() || isContinued),
        ...place,
      });
      return { ...unset(option, origin), beats, secret };
    }
  });
  return { settings, problems: [...problems, ...unknownNames(layers, options, unloaded)] };
}

/** The input for a schema of several options, by name, without the options that are not set. */
export function schemaInput(
  settings: readonly Setting[],
  names: ReadonlySet<string>,
): Record<string, unknown> {
  return Object.fromEntries(
    settings
      .filter(({ option, input }) => names.has(option.name) && input !== undefined)
      .map(({ option, input }) => [option.name, input]),
  );
}

function unset(option: Option, origin: Origin): Setting {
  return { option, value: option.default, input: undefined, origin, beats: [], secret: option.secret };
}

/** The entries of an option in all layers, the highest first. */
function entriesOf(layers: readonly Layer[], section: string, option: string): Entry[] {
  return layers.flatMap((layer) => layer.get(section)?.get(option) ?? []).reverse();
}

/**
 * How many of the entries make up the value. A mapping is merged over the lower sources of a dictionary. A text replaces the whole
 * dictionary, as in oslo.config, and a value of any other type replaces the one before.
 */
function wholeEntries(entries: readonly Entry[], { type }: Option): number {
  const whole = type === 'dictionary' ? entries.findIndex(({ value }) => !isMapping(value)) : 0;
  return whole === -1 ? entries.length : whole + 1;
}

/** The place of a value that several sources have set. */
type Merged = Pick<Entry, 'origin' | 'members'>;

/** Merges the entries of a dictionary, the highest first. */
function mergedDictionary(typed: readonly { readonly entry: Entry; readonly value: unknown }[]): {
  value: Mapping;
  members: Member[];
} {
  const provenance = new Provenance<Origin>();
  const value = [...typed].reverse().reduce<Mapping>((base, { entry, value: over }) => {
    const placed: Placed = (path, from, below) =>
      provenance.placed(path, below, () => entry.members?.get(String(from[0])) ?? entry.origin);
    return isMapping(over) ? merge(base, over, generalRules, placed) : base;
  }, {});
  const members = provenance
    .leaves(value)
    .map(({ path, source: origin, beats }) => ({ name: String(path[0]), origin, beats }));
  return { value, members };
}

/** A mistake at another line than that of the option. */
class MisplacedError extends Error {
  readonly place: Pick<Problem, 'origin' | 'message'>;

  constructor(place: Pick<Problem, 'origin' | 'message'>) {
    super(place.message);
    this.place = place;
  }
}

/** The value with the references in all its texts replaced. Values from code are literal: a "$" in a token is no reference. */
function replaced(
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

/** For an option of type text: the value of a flag as it was written. */
function asText(entry: Entry, { type }: Option): Entry {
  const { value, written } = entry;
  return type === 'text' && typeof value !== 'string' && written !== undefined
    ? { ...entry, value: written }
    : entry;
}

/** Looks up the value of `$name`. It may contain further references; a circular one is a mistake. */
function textLookup(layers: readonly Layer[], options: readonly Option[]) {
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
      // The name after its "$" may be part of a secret, and is reported with that option.
      throw thrown instanceof UnknownReferenceError
        ? new ValueError(`$${name} has no value: it refers to an option that is not set`)
        : thrown;
    } finally {
      visiting.delete(id);
    }
  };
  return lookup;
}

function referenceText(thrown: unknown, secret: boolean): string {
  if (thrown instanceof UnknownReferenceError) {
    // In a secret the name after the "$" is part of the secret.
    const subject = secret ? 'a "$" in the value' : `"$${thrown.reference}"`;
    return `${subject} refers to an option that is not set; write "$$" for a dollar sign`;
  }
  return systemErrorText(thrown);
}

/**
 * An indented `name = value` continues the option above it, so that the option it was meant to set is not set: a limit that everyone
 * believes is enforced. No option has values of this form.
 */
function swallowedOption(
  { value, origin }: Entry,
  options: readonly Option[],
): Pick<Problem, 'origin' | 'message'> | undefined {
  if (origin.kind !== 'file') {
    return undefined;
  }
  if (isYamlFile(origin.file)) {
    return holdsSecret(value, options)
      ? { origin, message: 'a part of the value looks like an option of its own; write it as "name: value"' }
      : undefined;
  }
  const lines = typeof value === 'string' ? value.split('\n') : [];
  const index = lines.findIndex((line, position) => {
    const [, name = '', delimiter] = (position > 0 && /^([a-z]\w*)\s*([=:])/i.exec(line)) || [];
    // A pair of a dictionary has a colon too.
    return delimiter === '=' || options.some((option) => option.name === name);
  });
  return index === -1
    ? undefined
    : {
        origin: { ...origin, line: origin.line + index },
        message:
          'this indented line continues the option, and looks like one of its own; remove the indentation',
      };
}

/** YAML joins the lines of a value when it is read. Looks for names of secret options only, also misspelled ones. */
function holdsSecret(value: unknown, options: readonly Option[]): boolean {
  if (typeof value !== 'string') {
    const parts = Array.isArray(value) || isMapping(value) ? Object.entries(value).flat() : [];
    return parts.some((part) => holdsSecret(part, options));
  }
  const names = [...value.matchAll(/(?<!\w)([a-z]\w*)\s*[=:]/gi)].map(([, name = '']) => name.toLowerCase());
  const isMeant = (name: string) =>
    options.some((option) => option.secret && distance(option.name, name) <= option.name.length / 5);
  return names.some(isMeant);
}
