/**
 * Layers and options → one typed value per option, with its origin, and every problem. Throws nothing: the
 * problems of all sources are collected, so that an operator can fix them at once.
 */
import { distance } from 'fastest-levenshtein';
import { formatOrigin, type Origin, type Problem } from '../base/errors.ts';
import { isMapping, type Mapping } from '../base/yaml/tree.ts';
import { entriesOf, referenceText, replaced, textLookup } from './interpolate.ts';
import { type Entry, isYamlFile, type Layer, shownName } from './layer.ts';
import { generalRules, merge, type Placed, Provenance } from './merge.ts';
import { checkNames, RESOURCE_TYPES } from './names.ts';
import { meantBy, nearestName } from './nearest.ts';
import type { Option } from './option.ts';
import { checkedValue, MismatchError, typedValue } from './typed.ts';

export interface Setting {
  readonly option: Option;
  /** The output of the option's schema; `undefined` = not set. */
  readonly value: unknown;
  /** The input of the schema; `undefined` = its default was used. A schema may transform one into the other. */
  readonly input: unknown;
  readonly origin: Origin;
  /** The overridden origins, the last first. */
  readonly beats: readonly Origin[];
  /** For a dictionary from several sources: the origin of each member. */
  readonly members?: readonly Member[];
  /** The option is a secret, or its value refers to one. */
  readonly secret: boolean;
}

interface Member {
  readonly name: string;
  readonly origin: Origin;
  readonly beats: readonly Origin[];
}

export interface Resolution {
  /** In the order of the options. A wrong value is replaced by the default, and is a problem in `problems`. */
  readonly settings: readonly Setting[];
  readonly problems: readonly Problem[];
}

/**
 * Resolves the options over the layers, lowest first. `resourceTypes`: known types. `unloaded`: undeclared
 * options that may be right.
 */
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
    // A wrong URL may contain a key anywhere.
    const isHidden = () => secret || option.url;
    // An indented line may be meant as a separate option, and be a secret.
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
      const merged = typed.length === 1 ? undefined : mergedDictionary(typed);
      if (merged !== undefined) {
        at = { origin, members: new Map(merged.members.map((member) => [member.name, member.origin])) };
      }
      const checked =
        merged === undefined
          ? checkedValue(first?.value, option, isHidden(), first?.written)
          : checkedValue(merged.value, option, isHidden());
      refuseEmptyVariable(entry, beats);
      checkNames(checked.value, option, { secret: isHidden(), isContinued }, resourceTypes);
      return { option, ...checked, origin, beats, secret, ...(merged && { members: merged.members }) };
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

/**
 * As in oslo.config, an empty variable is an empty value. One that hides another is rarely meant:
 * `OS_ENFORCEMENT__ENABLED_FILTERS=$FILTERS` would switch off the filters of blazar.conf.
 */
function refuseEmptyVariable({ value, origin }: Entry, [beaten]: readonly Origin[]): void {
  if (origin.kind === 'environment' && beaten !== undefined && String(value).trim() === '') {
    throw new Error(`the variable is empty, and would override ${formatOrigin(beaten)}: unset it`);
  }
}

/** The input of a schema of several options, by name, without options that are not set. */
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

/**
 * How many of the entries make up the value. Mappings are merged over the lower sources of a dictionary. A
 * text replaces the whole dictionary, as in oslo.config; a value of any other type replaces the earlier one.
 */
function wholeEntries(entries: readonly Entry[], { type }: Option): number {
  const whole = type === 'dictionary' ? entries.findIndex(({ value }) => !isMapping(value)) : 0;
  return whole === -1 ? entries.length : whole + 1;
}

type Merged = Pick<Entry, 'origin' | 'members'>;

/** Merges the entries of a dictionary, highest first. */
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

/** A mistake on another line than the option. */
class MisplacedError extends Error {
  readonly place: Pick<Problem, 'origin' | 'message'>;

  constructor(place: Pick<Problem, 'origin' | 'message'>) {
    super(place.message);
    this.place = place;
  }
}

/** For an option of type text: the value of a flag as written. */
function asText(entry: Entry, { type }: Option): Entry {
  const { value, written } = entry;
  return type === 'text' && typeof value !== 'string' && written !== undefined
    ? { ...entry, value: written }
    : entry;
}

/**
 * An indented `name = value` continues the option above it. The option it was meant to set stays unset: a
 * limit that is believed to be enforced. No option has values of this form.
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
    // A dictionary pair has a colon too.
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

/** YAML joins the lines of a value. Looks only for names of secret options, also misspelled ones. */
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

// Unknown names: a misspelled option is a limit that is believed to be enforced.

/** Removed options, by section and name → the replacement. */
const REMOVED: Readonly<Record<string, string>> = {
  'service.workers':
    'this option was removed: for several processes on one port, set reuse_port = true and start serve as often as you want, each with an admin_port of its own, for example as blazar-enforcement@1 and blazar-enforcement@2 with the unit in etc/systemd',
};

/** Prefixes of undeclared options whose class could not be loaded, which is reported elsewhere, as an error. */
interface UnloadedOptions {
  readonly section: string;
  /** `lab_a100` for LabA100Policy. */
  readonly prefix: string;
}

function unknownNames(
  layers: readonly Layer[],
  options: readonly Option[],
  unloaded: readonly UnloadedOptions[] = [],
): Problem[] {
  const problems: Problem[] = [];
  const sections = [...new Set(options.map((option) => option.section))];
  for (const layer of layers) {
    for (const [section, entries] of layer) {
      if (sections.includes(section)) {
        const names = options.filter((option) => option.section === section).map((option) => option.name);
        for (const [name, entry] of entries) {
          if (!names.includes(name) && !isUnloaded(section, name, unloaded)) {
            problems.push({
              severity: 'error',
              origin: entry.origin,
              section,
              option: shownName(name),
              message: REMOVED[`${section}.${name}`] ?? `unknown option${nearestName(name, names)}`,
            });
          }
        }
        continue;
      }
      // Fewer letters than for other names: sections of Blazar and others are valid here.
      const meant = sections.find((candidate) => distance(candidate, section.trim()) <= candidate.length / 5);
      const [entry] = entries.values();
      if (meant !== undefined) {
        problems.push({
          severity: 'error',
          origin: entry?.origin,
          section,
          message: `unknown section; the nearest right name is [${meant}]`,
        });
      }
    }
  }
  return problems;
}

/** A known mistake is wrong whatever class would declare it. */
function isUnloaded(section: string, name: string, unloaded: readonly UnloadedOptions[]): boolean {
  return (
    meantBy(name) === undefined &&
    unloaded.some(
      (one) =>
        one.section === section &&
        one.prefix !== '' &&
        (name === one.prefix || name.startsWith(`${one.prefix}_`)),
    )
  );
}
