/** Changes of a policy in a request, for display: bounded, and without secrets. */
import { isDeepStrictEqual } from 'node:util';
import { isMapping, type Mapping, member, type Path } from '../../base/yaml/tree.ts';
import { HIDDEN, type SecretValues } from '../secrets.ts';

export interface Changes {
  readonly list: readonly Change[];
  readonly leftOut: number;
}

/** Maximum number of displayed changes of one policy. */
export const MAX_CHANGES = 50;

interface Step {
  readonly before: Mapping;
  readonly after: Mapping;
}

type Visit = (path: Path, before: unknown, after: unknown) => void;

/**
 * The changes of each step. `secrets`: those of the original request; secrets that policies added are found.
 * Visits each value once, and searches changed ones for secrets.
 */
export function changesOf(steps: readonly Step[], secrets: SecretValues): Changes[] {
  const found = steps.map(({ before, after }) => {
    const shown: (() => Change)[] = [];
    let count = 0;
    compare([], before, after, (path, old, now) => {
      count += 1;
      const from = old === undefined ? undefined : secrets.shownAt(before, path);
      const to = now === undefined ? undefined : secrets.shownAt(after, path);
      if (shown.length < MAX_CHANGES) {
        const place = [...path];
        shown.push(() => changedText(place, from, to, secrets));
      }
    });
    return { shown, count };
  });
  // Only now are all secrets known.
  return found.map(({ shown, count }) => ({
    list: shown.map((one) => one()),
    leftOut: count - shown.length,
  }));
}

/** The changes of one policy that was called several times. */
export function joinedChanges(changes: readonly Changes[]): Changes {
  const list = changes.flatMap((one) => one.list);
  const leftOut = changes.reduce((sum, one) => sum + one.leftOut, 0);
  return { list: list.slice(0, MAX_CHANGES), leftOut: leftOut + Math.max(0, list.length - MAX_CHANGES) };
}

/** Calls `visit` with each scalar, and each empty list or mapping, that differs; `undefined` = missing. */
function compare(path: (string | number)[], before: unknown, after: unknown, visit: Visit): void {
  if (Array.isArray(before) && Array.isArray(after)) {
    compareLists(path, before, after, visit);
  } else if (isMapping(before) && isMapping(after)) {
    for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
      compareAt(name, path, member(before, name), member(after, name), visit);
    }
  } else if (hasParts(before) || hasParts(after)) {
    visitLeaves(path, before, (where, leaf) => visit(where, leaf, undefined));
    visitLeaves(path, after, (where, leaf) => visit(where, undefined, leaf));
  } else if (!Object.is(before, after)) {
    visit(path, before, after);
  }
}

function compareAt(
  step: string | number,
  path: (string | number)[],
  before: unknown,
  after: unknown,
  visit: Visit,
): void {
  path.push(step);
  compare(path, before, after, visit);
  path.pop();
}

/** Skips equal items at the beginning and the end; the others are compared by position. */
function compareLists(
  path: (string | number)[],
  before: readonly unknown[],
  after: readonly unknown[],
  visit: Visit,
): void {
  const least = Math.min(before.length, after.length);
  let start = 0;
  while (start < least && isDeepStrictEqual(before[start], after[start])) {
    start += 1;
  }
  let end = 0;
  while (end < least - start && isDeepStrictEqual(before.at(-1 - end), after.at(-1 - end))) {
    end += 1;
  }
  const most = Math.max(before.length, after.length) - end;
  for (let position = start; position < most; position += 1) {
    const old = position < before.length - end ? before[position] : undefined;
    const now = position < after.length - end ? after[position] : undefined;
    compareAt(position, path, old, now, visit);
  }
}

function hasParts(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0;
}

function visitLeaves(
  path: (string | number)[],
  value: unknown,
  visit: (path: Path, leaf: unknown) => void,
): void {
  if (value === undefined) {
    return;
  }
  if (typeof value !== 'object' || value === null || !hasParts(value)) {
    visit(path, value);
    return;
  }
  const parts: [string | number, unknown][] = Array.isArray(value)
    ? value.map((item, position) => [position, item])
    : Object.entries(value);
  for (const [step, part] of parts) {
    path.push(step);
    visitLeaves(path, part, visit);
    path.pop();
  }
}

// Texts of a change: its path and the values before and after, shortened.

/** A value that was added, removed or replaced. Texts are cut, and secrets in them are `****`. */
interface Change {
  /** Such as `task.resources.labels.team` or `skypilot_config.kubernetes.pod_config.spec.tolerations[2].key`. */
  readonly path: string;
  /** `null` = there was none. A string that YAML would read as another type is quoted. */
  readonly before: string | null;
  /** `null` = there is none. */
  readonly after: string | null;
}

/** In characters. */
const MAX_STEP = 64;
const MAX_PATH = 240;
const MAX_VALUE = 120;
/** Length of the common part of two long texts that is displayed. */
const COMMON = 40;
/** Known secrets are searched only this far around the change; if a secret is longer, the text is hidden. */
const SEARCHED = 2000;

const PLAIN_NAME = new RegExp(`^[\\w-]{1,${MAX_STEP}}$`);
/** Text that YAML reads unchanged without quotes. */
const PLAIN_TEXT = /^[A-Za-z/][\w ./:@+*=-]*$/;
const NOT_A_TEXT = /^(?:true|false|yes|no|on|off|null|y|n)$|:(?: |$)| $/i;

/** `before`, `after`: as `SecretValues.shownAt` returns them; `undefined` = missing. */
function changedText(path: Path, before: unknown, after: unknown, secrets: SecretValues): Change {
  const [from, to] = [before, after].map((value) => (typeof value === 'string' ? value : undefined));
  const start = from === undefined || to === undefined ? 0 : firstDifference(from, to);
  const [old, now] = [before, after].map((value) => textOf(value, start, secrets));
  const [first, second] = window(old ?? null, now ?? null);
  return { path: pathText(path, secrets), before: first, after: second };
}

function pathText(path: Path, secrets: SecretValues): string {
  const text = path
    .map((step, index) => {
      if (typeof step === 'number') {
        return `[${step}]`;
      }
      const name = step.length > SEARCHED ? HIDDEN : secrets.hideIn(step);
      if (PLAIN_NAME.test(name)) {
        return index === 0 ? name : `.${name}`;
      }
      return `[${JSON.stringify(name.length > MAX_STEP ? `${name.slice(0, MAX_STEP)}…` : name)}]`;
    })
    .join('');
  // The end is most specific.
  return text.length > MAX_PATH
    ? copied(`${text.slice(0, MAX_PATH / 3)}…${text.slice((-MAX_PATH * 2) / 3)}`)
    : text;
}

/** Of a long text, only the part around the change, which begins at `start`. */
function textOf(value: unknown, start: number, secrets: SecretValues): string | null {
  if (value === undefined) {
    return null;
  }
  if (typeof value !== 'string') {
    return typeof value === 'object' && value !== null
      ? JSON.stringify(value)
      : secrets.hideKnown(String(value));
  }
  const from = Math.max(0, start - SEARCHED);
  const end = start + SEARCHED;
  const isWhole = from === 0 && end >= value.length;
  if (!isWhole && secrets.longest > SEARCHED) {
    return HIDDEN;
  }
  const shown = secrets.hideKnown(value.slice(from, end));
  // A cut may leave a part of a secret, which is not recognized.
  const first = from === 0 ? 0 : secrets.longest;
  const last = end >= value.length ? shown.length : Math.max(first, shown.length - secrets.longest);
  return quoted(shown.slice(first, last));
}

function quoted(text: string): string {
  return text === HIDDEN || (PLAIN_TEXT.test(text) && !NOT_A_TEXT.test(text)) ? text : JSON.stringify(text);
}

/** Shortens both texts to their difference, if they are long. */
function window(before: string | null, after: string | null): readonly [string | null, string | null] {
  const start =
    before === null || after === null || Math.max(before.length, after.length) <= MAX_VALUE
      ? 0
      : Math.max(0, firstDifference(before, after) - COMMON);
  return [cutFrom(before, start), cutFrom(after, start)];
}

function cutFrom(text: string | null, start: number): string | null {
  if (text === null || (start === 0 && text.length <= MAX_VALUE)) {
    return text;
  }
  const end = start + MAX_VALUE;
  return copied(`${start > 0 ? '…' : ''}${text.slice(start, end)}${text.length > end ? '…' : ''}`);
}

function firstDifference(one: string, other: string): number {
  let index = 0;
  while (index < one.length && one[index] === other[index]) {
    index += 1;
  }
  return index;
}

/** A slice would keep the whole text in memory. */
function copied(text: string): string {
  return structuredClone(text);
}
