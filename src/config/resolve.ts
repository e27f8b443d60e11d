/**
 * Layers and options → one typed value an option, with its origin, and everything that is wrong with them.
 * Nothing is thrown here: all mistakes of all sources are collected, so that an operator mends them in one go.
 */
import { distance } from 'fastest-levenshtein';
import type { Origin, Problem } from '../errors.ts';
import { interpolate, type Reference, UnknownReferenceError } from './interpolate.ts';
import { nearestName } from './nearest.ts';
import type { Option } from './option.ts';
import { systemErrorText } from './read-file.ts';
import { showText } from './secret.ts';
import type { Entry, Layer } from './sources.ts';
import { readValue, ValueError } from './value.ts';

/** A chain of references that doubles at each step (`a = $b$b`) would otherwise fill the memory. */
const MAX_REFERENCES = 10_000;

/** The effective value of an option. */
export interface Setting {
  readonly option: Option;
  /** As the option's schema returned it; `undefined` = not set. */
  readonly value: unknown;
  /** What the schema was given; `undefined` where it chose its default. A schema may turn one into the other. */
  readonly input: unknown;
  readonly origin: Origin;
  /** The option is a secret, or its value was put together from one. */
  readonly secret: boolean;
}

export interface Resolution {
  /** In the order of the options; one with a wrong value has its default here and a problem in `problems`. */
  readonly settings: readonly Setting[];
  readonly problems: readonly Problem[];
}

/** Resolves the options over the layers, lowest layer first. */
export function resolve(layers: readonly Layer[], options: readonly Option[]): Resolution {
  const effectiveText = textLookup(layers, options);
  const problems: Problem[] = [];
  const names = new Set(options.map(({ name }) => name));
  const settings = options.map((option) => {
    const entry = effectiveEntry(layers, option.section, option.name);
    if (entry === undefined) {
      return unset(option, { kind: 'default' });
    }
    const { origin } = entry;
    let secret = option.secret;
    let value = entry.value;
    const swallowed = swallowedOption(entry, names);
    if (swallowed !== undefined) {
      problems.push({ severity: 'error', section: option.section, option: option.name, ...swallowed });
      return unset(option, origin);
    }
    try {
      // What code passes is meant as it is; a "$" in its token is no reference.
      if (typeof value === 'string' && origin.kind !== 'code') {
        const reference = interpolate(value, option.section, effectiveText);
        secret ||= reference.secret;
        value = reference.text;
      }
      return { option, ...typedValue(value, option, secret), origin, secret };
    } catch (thrown) {
      problems.push({
        severity: 'error',
        origin,
        section: option.section,
        option: option.name,
        message: referenceText(thrown, secret || isContinued(entry.value)),
      });
      return { ...unset(option, origin), secret };
    }
  });
  return { settings, problems: [...problems, ...unknownNames(layers, options)] };
}

/** What a schema of several options takes, by name; options that are not set are left to it. */
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
  return { option, value: option.default, input: undefined, origin, secret: option.secret };
}

function effectiveEntry(layers: readonly Layer[], section: string, option: string): Entry | undefined {
  return layers
    .findLast((layer) => layer.get(section)?.has(option))
    ?.get(section)
    ?.get(option);
}

/** What `$name` stands for. A reference may lead to further references; a circle is a mistake. */
function textLookup(layers: readonly Layer[], options: readonly Option[]) {
  const visiting = new Set<string>();
  let count = 0;
  const lookup = (section: string, name: string): Reference | undefined => {
    count += 1;
    if (count > MAX_REFERENCES) {
      throw new ValueError('the configuration has too many references to other options');
    }
    const option = options.find((candidate) => candidate.section === section && candidate.name === name);
    const entry = effectiveEntry(layers, section, name);
    if (entry === undefined) {
      return option && { text: showPlain(option.default), secret: option.secret };
    }
    const id = `${section}.${name}`;
    if (visiting.has(id)) {
      throw new ValueError(`$${name} refers to itself`);
    }
    visiting.add(id);
    try {
      const text = showPlain(entry.value);
      const reference =
        entry.origin.kind === 'code' ? { text, secret: false } : interpolate(text, section, lookup);
      return { text: reference.text, secret: reference.secret || option?.secret === true };
    } catch (thrown) {
      // What stands behind its "$" may be a piece of a secret, and is reported with the option itself.
      throw thrown instanceof UnknownReferenceError
        ? new ValueError(`$${name} has no value: it refers to an option that is not set`)
        : thrown;
    } finally {
      visiting.delete(id);
    }
  };
  return lookup;
}

function showPlain(value: unknown): string {
  return value === undefined || value === null ? '' : String(value);
}

/** Throws an `Error` whose message is the problem. */
function typedValue(value: unknown, option: Option, secret: boolean): Pick<Setting, 'value' | 'input'> {
  let input = value;
  if (typeof value === 'string') {
    if (value.trim() === '' && option.default === undefined && (option.file || option.type !== 'text')) {
      return { value: undefined, input: undefined };
    }
    try {
      input = readValue(value, option);
    } catch (thrown) {
      throw new ValueError(expectation(value, option, secret, thrown instanceof Error ? thrown.message : ''));
    }
  }
  const parsed = option.schema.safeParse(input);
  if (parsed.success) {
    return { value: parsed.data, input };
  }
  const [issue] = parsed.error.issues;
  const where =
    secret || issue === undefined || issue.path.length === 0 ? '' : `see "${issue.path.join('.')}"`;
  throw new ValueError(expectation(value, option, secret, issue?.code === 'custom' ? issue.message : where));
}

function expectation(value: unknown, option: Option, secret: boolean, detail: string): string {
  const got = secret ? 'a value that is not shown' : showText(value);
  const comment =
    typeof value === 'string' && /\s[#;]/.test(value) ? 'a comment needs a line of its own' : '';
  const details = [detail, comment].filter((text) => text !== '').join('; ');
  return `expected ${option.expected}, got ${got}${details === '' ? '' : ` (${details})`}`;
}

function referenceText(thrown: unknown, secret: boolean): string {
  if (thrown instanceof UnknownReferenceError) {
    // Of a secret not even the name behind the "$" is shown: it is a piece of it.
    const subject = secret ? 'a "$" in the value' : `"$${thrown.reference}"`;
    return `${subject} refers to an option that is not set; write "$$" for a dollar sign`;
  }
  return systemErrorText(thrown);
}

/**
 * An indented `name = value` continues the option above it, in the dialect, and what it was to set is not set: a limit
 * that everyone thinks is enforced. No option of ours has a value that looks like this.
 */
function swallowedOption(
  { value, origin }: Entry,
  names: ReadonlySet<string>,
): Pick<Problem, 'origin' | 'message'> | undefined {
  const lines = typeof value === 'string' && origin.kind === 'file' ? value.split('\n') : [];
  const index = lines.findIndex((line, position) => {
    const [, name = '', delimiter] = (position > 0 && /^([a-z]\w*)\s*([=:])/i.exec(line)) || [];
    // A pair of a dictionary has a colon too.
    return delimiter === '=' || names.has(name);
  });
  if (index === -1 || origin.kind !== 'file') {
    return undefined;
  }
  return {
    origin: { ...origin, line: origin.line + index },
    message: 'this indented line continues the option, and looks like one of its own; remove the indentation',
  };
}

/** What stands on an indented line may have been meant as an option of its own, and be a secret. */
function isContinued(value: unknown): boolean {
  return typeof value === 'string' && value.includes('\n');
}

/** Options that a section of ours does not have, and sections that are nearly one of ours. */
function unknownNames(layers: readonly Layer[], options: readonly Option[]): Problem[] {
  const problems: Problem[] = [];
  const sections = [...new Set(options.map((option) => option.section))];
  for (const layer of layers) {
    for (const [section, entries] of layer) {
      if (sections.includes(section)) {
        const names = options.filter((option) => option.section === section).map((option) => option.name);
        for (const [name, entry] of entries) {
          if (!names.includes(name)) {
            problems.push({
              severity: 'error',
              origin: entry.origin,
              section,
              // Behind a space stands what was meant as a value.
              option: /\s/.test(name) ? `${name.split(/\s/, 1)[0]} …` : name,
              message: `unknown option${nearestName(name, names)}`,
            });
          }
        }
        continue;
      }
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
