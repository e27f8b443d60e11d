/** The effective value of a SkyPilot key, for a context, workspace and task. */

import { isAtOrBelow, isMapping, type Path, setMember } from '../../../base/yaml/tree.ts';
import type { Leaf } from '../../../config/merge.ts';
import { isCloud, type Reader, readerOf, readersBelow, regionMember } from './readers.ts';
import { type Candidate, poolContext, type Reading, resolve } from './rules.ts';
import { isGiven, leavesBelow, NOTHING, partOf, placedAt, type Traced } from './traced.ts';

type Key = readonly string[];

/** A place that was searched. */
export interface LookedAt {
  readonly where: Candidate<unknown>['where'];
  /** `kubernetes.context_configs.east.pod_config`. For a task: within its `config`. */
  readonly key: Key;
  /**
   * - `taken`: the value, or part of it, is from here
   * - `overridden`: set, but another place wins
   * - `not set`
   * - `not read`: set, but SkyPilot does not look here for this key
   */
  readonly state: 'taken' | 'overridden' | 'not set' | 'not read';
}

export interface EffectiveValue<Source> {
  readonly key: Key;
  /** `undefined` = nothing is set: SkyPilot's own default applies. */
  readonly value: unknown;
  /** The value of the key that SkyPilot reads, and the path of `value` in it. */
  readonly whole: { readonly key: Key; readonly value: unknown; readonly path: Path };
  /** How SkyPilot looks for it; `undefined` = a section, whose keys have their own rules. */
  readonly rule: Reader['rule'] | undefined;
  /** Paths are relative to the value. */
  readonly leaves: readonly Leaf<Source>[];
  /** The highest precedence first. For a section, these are of each of its keys in turn. */
  readonly lookedAt: readonly LookedAt[];
  /** Facts that readers of the configuration may not expect. */
  readonly notes: readonly string[];
}

/**
 * The value of a key. `key` may be a section, a key that SkyPilot reads, or one within it. A section contains
 * the effective value of each of its keys.
 *
 * @throws MergeError if SkyPilot cannot merge the values
 */
export function effectiveValueOf<Source>(reading: Reading<Source>, key: Key): EffectiveValue<Source> {
  const [cloud = '', member] = key;
  const holder = regionMember(cloud);
  const reader = readerOf(key);
  if (reader !== undefined) {
    return answerOf(reading, key, reader);
  }
  const isSection = key.length === 1 || readersBelow(key).length > 0;
  if (isSection && (holder !== undefined || readersBelow(key).length > 0)) {
    return sectionOf(reading, key);
  }
  // Whole sections, and keys below the holder of contexts, are looked up as written.
  const isPlain = !isCloud(cloud) || member === holder;
  // Other keys are read at their second level.
  return answerOf(
    reading,
    key,
    isPlain
      ? { key: key.slice(0, isCloud(cloud) ? 2 : 1), rule: 'general' }
      : { key: key.slice(0, 2), rule: 'region' },
  );
}

function answerOf<Source>(reading: Reading<Source>, key: Key, reader: Reader): EffectiveValue<Source> {
  const asRead = key.slice(0, reader.key.length);
  const below = key.slice(asRead.length);
  const { result, candidates } = resolve(reading, asRead, reader);
  const part = descended(result, below);
  const places = shownPlaces(candidates).map((candidate) => ({
    ...candidate,
    key: [...candidate.key, ...below],
    found: descended(candidate.found, below),
  }));
  const others = unread(reading, asRead, reader, below);
  return {
    key,
    value: part.value,
    whole: { key: asRead, value: result.value, path: part.path },
    rule: reader.rule,
    leaves: part.leaves,
    lookedAt: [...places.map((place) => lookedAt(place, part)), ...others],
    notes: notesOn(reading, asRead, reader, others),
  };
}

/** Each place once. A task has no values by context, so such a place is shown only if it is set. */
function shownPlaces<Source>(candidates: readonly Candidate<Source>[]): Candidate<Source>[] {
  const seen = new Set<string>();
  return candidates.filter(({ where, key, found }) => {
    const id = JSON.stringify([where, key]);
    const isNew = !seen.has(id);
    seen.add(id);
    const isContextOfTask = where === 'task' && key[1] === regionMember(key[0] ?? '');
    return isNew && (isSet(found) || !isContextOfTask);
  });
}

function lookedAt<Source>({ where, key, found }: Candidate<Source>, result: Traced<Source>): LookedAt {
  const sources = new Set(found.leaves.map(({ source }) => source));
  const isTaken = result.leaves.some(({ source }) => sources.has(source));
  return { where, key, state: !isSet(found) ? 'not set' : isTaken ? 'taken' : 'overridden' };
}

const isSet = ({ value }: Traced<unknown>) => value !== undefined;

/** Places where the key is set, but that SkyPilot does not read. */
function unread<Source>(reading: Reading<Source>, key: Key, reader: Reader, below: Key): LookedAt[] {
  const { config, task, workspace, region } = reading;
  const [cloud = '', ...rest] = key;
  const holder = regionMember(cloud);
  const places: Omit<LookedAt, 'state'>[] = [];
  if (reader.task !== true) {
    places.push({ where: 'task', key });
  }
  if (!['workspace', 'spellings', 'workspace section'].includes(reader.rule)) {
    places.push({ where: 'configuration', key: ['workspaces', workspace, ...key] });
  }
  if (region !== undefined && holder !== undefined) {
    const name = cloud === 'ssh' ? poolContext(region, reader.pool !== true) : region;
    if (cloud === 'ssh' || ['general', 'by region', 'workspace section'].includes(reader.rule)) {
      places.push({ where: 'configuration', key: [cloud, holder, name, ...rest] });
    }
  }
  return places
    .filter((place) => isSet(descended(partOf(place.where === 'task' ? task : config, place.key), below)))
    .map(({ where, key: at }) => ({ where, key: [...at, ...below], state: 'not read' }));
}

function notesOn<Source>(
  { config, task }: Reading<Source>,
  key: Key,
  reader: Reader,
  others: readonly LookedAt[],
): string[] {
  const notes = others.map(({ where, key: unreadKey }) =>
    where === 'task'
      ? `the task sets ${unreadKey.join('.')}, but SkyPilot does not read it from tasks`
      : `${unreadKey.join('.')} is set, but SkyPilot does not look there for this key`,
  );
  if (key.at(-1) === 'custom_metadata' && isGiven(partOf(task, key))) {
    notes.push('for load balancers and ingresses of open ports, the context wins over the task');
  }
  if (reader.rule === 'by region' && isMapping(partOf(config, key).value)) {
    notes.push('a mapping has one command for each region; SkyPilot uses no region that is not in it');
  }
  return notes;
}

function distinct(places: readonly LookedAt[]): LookedAt[] {
  return [...new Map(places.map((place) => [JSON.stringify(place), place])).values()];
}

/** Each key of a section, wherever it is set. */
function sectionOf<Source>(reading: Reading<Source>, key: Key): EffectiveValue<Source> {
  const [cloud = ''] = key;
  const holder = regionMember(cloud);
  const { config, task, workspace, region } = reading;
  const own = partOf(config, ['workspaces', workspace]);
  const names = new Set<string>();
  for (const tree of [config, own, task]) {
    const inRegions =
      holder === undefined || region === undefined
        ? []
        : [region, poolContext(region, true), poolContext(region, false)].map((name) =>
            partOf(tree, [cloud, holder, name, ...key.slice(1)]),
          );
    for (const { value } of [partOf(tree, key), ...inRegions]) {
      for (const name of isMapping(value) ? Object.keys(value) : []) {
        names.add(name);
      }
    }
  }
  for (const reader of readersBelow(key)) {
    names.add(reader.key[key.length] ?? '');
  }
  names.delete(holder ?? '');
  const members = [...names].map((name) => effectiveValueOf(reading, [...key, name]));
  const found = members.filter(({ value }) => value !== undefined);
  const value: Record<string, unknown> = {};
  for (const { key: at, value: own } of found) {
    setMember(value, at.at(-1) ?? '', own);
  }
  const known = found.length === 0 ? undefined : value;
  return {
    key,
    value: known,
    whole: { key, value: known, path: [] },
    rule: undefined,
    leaves: found.flatMap(
      ({ key: at, value: own, leaves }) => placedAt({ value: own, leaves }, at.slice(-1)).leaves,
    ),
    lookedAt: distinct(members.flatMap((one) => one.lookedAt.filter(({ state }) => state !== 'not set'))),
    notes: [...new Set(members.flatMap(({ notes }) => notes))],
  };
}

/** The part below a path. Names may contain dots, so one name may span several steps. `[2]` is a position. */
function descended<Source>(traced: Traced<Source>, path: Key): Traced<Source> & { readonly path: Path } {
  let { value } = traced;
  const at: (string | number)[] = [];
  let rest = path;
  while (rest.length > 0) {
    const next = stepIn(value, rest);
    if (next === undefined) {
      return { ...NOTHING, path: at };
    }
    at.push(next.step);
    value = next.value;
    rest = rest.slice(next.taken);
  }
  const leaves = leavesBelow(traced.leaves, at);
  return { value, path: at, leaves: leaves.length > 0 ? leaves : wholeLeaf(traced, at, value) };
}

function stepIn(
  value: unknown,
  path: Key,
): { readonly step: string | number; readonly value: unknown; readonly taken: number } | undefined {
  if (Array.isArray(value)) {
    const position = /^\[(\d{1,6})\]$/.exec(path[0] ?? '');
    const step = Number(position?.[1]);
    return position === null || step >= value.length ? undefined : { step, value: value[step], taken: 1 };
  }
  if (!isMapping(value)) {
    return undefined;
  }
  for (let taken = path.length; taken > 0; taken -= 1) {
    const step = path.slice(0, taken).join('.');
    if (Object.hasOwn(value, step)) {
      return { step, value: value[step], taken };
    }
  }
  return undefined;
}

/** A list from one source is one leaf, which is the source of everything in it, too. */
function wholeLeaf<Source>({ leaves }: Traced<Source>, at: Path, value: unknown): Leaf<Source>[] {
  const whole = leaves.find(({ path }) => isAtOrBelow(at, path));
  return whole === undefined ? [] : [{ ...whole, path: [], value }];
}
