/** Reads each source into a layer of names, values and origins, independent of what the options mean. */
import { extname } from 'node:path';
import type { Origin, Problem } from '../base/errors.ts';
import type { YamlDocument as YamlDocumentType } from '../base/yaml/document.ts';
import { isMapping, type Mapping } from '../base/yaml/tree.ts';
import type { Pair } from './dotlist.ts';
import { readTextFile, systemErrorText } from './read-file.ts';
import { parseIni } from './text.ts';

/** A value as in its source: an untyped text, a list or mapping of such texts, or a value from code. */
export interface Entry {
  readonly value: unknown;
  readonly origin: Origin;
  /** For a mapping: the origin of each member. */
  readonly members?: ReadonlyMap<string, Origin>;
  /** The YAML text of a flag. `-` and `[::]` are lists in YAML, but an option of type text takes them literally. */
  readonly written?: string;
}

/** One source: section name in lower case → option name → entry. */
export type Layer = ReadonlyMap<string, ReadonlyMap<string, Entry>>;

type Sections = Map<string, Map<string, Entry>>;

const YAML_FILE = /^\.(ya?ml|json)$/;

/** Whether a file is YAML, by its name; JSON is YAML too. All other files are INI. */
export function isYamlFile(file: string): boolean {
  return YAML_FILE.test(extname(file));
}

/**
 * A name up to the first character that is invalid in names, such as a space, "=", ":" or "/": the rest may
 * be a secret value.
 */
export function shownName(name: string): string {
  const [shown = ''] = /^[\p{L}\p{N}_.$[\]-]*/u.exec(name.trim()) ?? [];
  return shown === name.trim() ? name : `${shown} …`;
}

/** A file and its layer. */
export interface FileLayer {
  readonly file: string;
  readonly layer: Layer;
  /** Its last line has no line break. */
  readonly isUnended: boolean;
}

/** The layer of a file. If it cannot be read: an empty layer, and a problem that ends with `hint`. */
export async function fileLayer(file: string, problems: Problem[], hint = ''): Promise<FileLayer> {
  try {
    const text = readTextFile(file);
    const layer = isYamlFile(file) ? await yamlLayer(text, file, problems) : iniLayer(text, file, problems);
    return { file, layer, isUnended: /[^\r\n]$/.test(text) };
  } catch (thrown) {
    problems.push({
      severity: 'error',
      message: `${file}: could not be read: ${systemErrorText(thrown)}${hint}`,
    });
    return { file, layer: new Map(), isUnended: false };
  }
}

function iniLayer(text: string, file: string, problems: Problem[]): Layer {
  const document = parseIni(text, file);
  problems.push(...document.problems);
  const layer: Sections = new Map();
  for (const [section, options] of document.sections) {
    const entries = new Map<string, Entry>();
    for (const [option, { value, line }] of options) {
      entries.set(option, { value, origin: { kind: 'file', file, line } });
    }
    layer.set(section, entries);
  }
  return layer;
}

/**
 * Sections and options are mappings. Scalars stay texts: as for INI, the type of the option decides how they
 * are read.
 */
async function yamlLayer(text: string, file: string, problems: Problem[]): Promise<Layer> {
  // Loaded only for YAML: it takes as long as the rest of a command's start.
  const { YamlDocument } = await import('../base/yaml/document.ts');
  const { YamlError } = await import('../base/yaml/tree.ts');
  const report = (line: number, message: string) =>
    problems.push({ severity: 'error', origin: { kind: 'file', file, line }, message });
  let document: YamlDocumentType;
  try {
    document = YamlDocument.parse(text);
  } catch (thrown) {
    if (!(thrown instanceof YamlError)) {
      throw thrown;
    }
    report(thrown.line ?? 1, `expected YAML: ${thrown.reason}`);
    return new Map();
  }
  for (const { line } of document.repetitions()) {
    report(line, 'this name is repeated');
  }
  const { texts } = document;
  const layer: Sections = new Map();
  if (texts === '') {
    return layer;
  }
  if (!isMapping(texts)) {
    report(1, 'expected sections such as "enforcement:", with options below them');
    return layer;
  }
  for (const [section, options] of Object.entries(texts)) {
    if (!isMapping(options)) {
      if (options !== '') {
        report(
          document.lineOf([section]),
          'expected a section such as "enforcement:", with options below it',
        );
      }
      continue;
    }
    const originOf = (...path: string[]): Origin => ({
      kind: 'file',
      file,
      line: document.lineOf([section, ...path]),
    });
    for (const [option, value] of Object.entries(options)) {
      set(layer, section.trim().toLowerCase(), option, {
        value,
        origin: originOf(option),
        ...membersOf(value, (name) => originOf(option, name)),
      });
    }
  }
  return layer;
}

/** `OS_<SECTION>__<OPTION>`, as in oslo.config. Other variables are ignored. */
export function environmentLayer(environment: Readonly<Record<string, string | undefined>>): Layer {
  const layer: Sections = new Map();
  for (const [variable, value] of Object.entries(environment)) {
    const match = /^OS_([A-Z0-9_]+?)__([A-Z0-9_]+)$/.exec(variable);
    if (match?.[1] !== undefined && match[2] !== undefined && value !== undefined) {
      set(layer, match[1].toLowerCase(), match[2].toLowerCase(), {
        value,
        origin: { kind: 'environment', variable },
      });
    }
  }
  return layer;
}

/** Pairs of `--config`: `section.option=value`, or `section.option.name=value` for one member of a dictionary. */
export function pairsLayer(pairs: readonly Pair[], problems: Problem[]): Layer {
  const layer: Sections = new Map();
  for (const { path, value } of pairs) {
    const [section = '', option, ...below] = path;
    const wrong = [section, option ?? ''].find((name) => !/^[\w-]+$/.test(name));
    if (option === undefined || wrong !== undefined) {
      const got = wrong ? shownName(wrong) : section;
      problems.push({
        severity: 'error',
        message: `--config: expected section.option=value, got "${got}" before "="`,
      });
      continue;
    }
    const origin: Origin = { kind: 'command line', flag: `--config ${path.join('.')}` };
    const name = below.join('.');
    const entry: Entry =
      below.length === 0
        ? { value: value.texts, origin, written: value.toString(), ...membersOf(value.texts, () => origin) }
        : withMember(layer.get(section.toLowerCase())?.get(option), name, value.texts, origin);
    set(layer, section.toLowerCase(), option, entry);
  }
  return layer;
}

/** A pair adds its member to those of earlier pairs. */
function withMember(before: Entry | undefined, name: string, value: unknown, origin: Origin): Entry {
  const known = before !== undefined && isMapping(before.value) ? before : undefined;
  return {
    value: { ...(known?.value as Mapping | undefined), [name]: value },
    origin,
    members: new Map([...(known?.members ?? []), [name, origin]]),
  };
}

/** An option that has a flag of its own, such as `--port`. */
export interface FlagSetting {
  readonly flag: string;
  readonly section: string;
  readonly option: string;
  readonly value: string;
}

export function flagsLayer(settings: readonly FlagSetting[]): Layer {
  const layer: Sections = new Map();
  for (const { section, option, value, flag } of settings) {
    set(layer, section, option, { value, origin: { kind: 'command line', flag } });
  }
  return layer;
}

export function codeLayer(values: Readonly<Record<string, Readonly<Record<string, unknown>>>>): Layer {
  const layer: Sections = new Map();
  const origin: Origin = { kind: 'code' };
  for (const [section, options] of Object.entries(values)) {
    for (const [option, value] of Object.entries(options)) {
      if (value !== undefined) {
        set(layer, section.toLowerCase(), option, { value, origin, ...membersOf(value, () => origin) });
      }
    }
  }
  return layer;
}

function membersOf(value: unknown, originOf: (name: string) => Origin): Pick<Entry, 'members'> {
  return isMapping(value)
    ? { members: new Map(Object.keys(value).map((name) => [name, originOf(name)])) }
    : {};
}

function set(layer: Sections, section: string, option: string, entry: Entry): void {
  const options = layer.get(section) ?? new Map<string, Entry>();
  options.set(option, entry);
  layer.set(section, options);
}
