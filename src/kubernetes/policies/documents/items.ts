/** Reads the objects of YAML files and folders, each with its position. */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Problem } from '../../../base/errors.ts';
import { YamlDocument } from '../../../base/yaml/document.ts';
import { formatPath, isMapping, type Mapping, type Path, YamlError } from '../../../base/yaml/tree.ts';
import { readTextFile, systemErrorText } from '../../../config/read-file.ts';

/**
 * The path of a key with this name, anywhere in a JSON value. Schemas drop `__proto__` silently, and a rule
 * with it.
 */
export function pathTo(name: string, value: unknown): Path | undefined {
  const entries: [string | number, unknown][] = Array.isArray(value)
    ? [...value.entries()]
    : isMapping(value)
      ? Object.entries(value)
      : [];
  for (const [step, below] of entries) {
    const path = step === name ? [] : pathTo(name, below);
    if (path !== undefined) {
      return [step, ...path];
    }
  }
  return undefined;
}

/** Larger than all policies and roles of a cluster together. */
const MAX_BYTES = 32 * 1024 * 1024;

type Report = (problem: Problem) => void;

export class Item {
  readonly file: string;
  readonly value: Mapping;
  readonly #document: YamlDocument;
  /** Its path in the document; in a `List`, below `items`. */
  readonly #path: Path;

  constructor(file: string, document: YamlDocument, path: Path, value: Mapping) {
    this.file = file;
    this.value = value;
    this.#document = document;
    this.#path = path;
  }

  lineOf(path: Path): number {
    return this.#document.lineOf([...this.#path, ...path]);
  }

  problem(path: Path, message: string, severity: Problem['severity'] = 'error'): Problem {
    const field = path.length === 0 ? '' : `${formatPath(path)}: `;
    return problemAt(this.file, this.lineOf(path), `${field}${message}`, severity);
  }
}

/** Reads files, and the `*.yaml`, `*.yml` and `*.json` files of folders, sorted by name. */
export function readItems(paths: readonly string[], report: Report): Item[] {
  return paths.flatMap((path) => filesAt(path, report)).flatMap((file) => itemsIn(file, report));
}

/** The text of each file that `readItems` reads. Files that cannot be read are missing: `readItems` reports them. */
export function policyTexts(paths: readonly string[]): ReadonlyMap<string, string> {
  const files = paths.flatMap((path) => filesAt(path, () => {}));
  return new Map(
    files.flatMap((file): [string, string][] => {
      try {
        return [[file, readTextFile(file, MAX_BYTES)]];
      } catch {
        return [];
      }
    }),
  );
}

/** The kind and name of each object in these texts of files. */
export function objectNames(texts: ReadonlyMap<string, string>): ReadonlySet<string> {
  const items = [...texts].flatMap(([file, text]) =>
    YamlDocument.parseAll(text).flatMap((document) => itemsOf(file, document, () => {})),
  );
  return new Set(
    items.map(({ value: { kind, metadata } }) => {
      const { namespace, name } = isMapping(metadata) ? metadata : {};
      return `${String(kind)} ${namespace == null ? '' : `${String(namespace)}/`}${String(name)}`;
    }),
  );
}

function isPolicyFile(name: string): boolean {
  return /\.(ya?ml|json)$/i.test(name) && !name.startsWith('.');
}

function filesAt(path: string, report: Report): string[] {
  try {
    if (!statSync(path).isDirectory()) {
      return [path];
    }
    const names = readdirSync(path).filter(isPolicyFile).sort();
    if (names.length === 0) {
      report(problemOf(path, 'no *.yaml, *.yml or *.json file in this folder'));
    }
    return names.map((name) => join(path, name));
  } catch (thrown) {
    report(problemOf(path, unreadable(thrown)));
    return [];
  }
}

function itemsIn(file: string, report: Report): Item[] {
  try {
    const documents = YamlDocument.parseAll(readTextFile(file, MAX_BYTES));
    if (documents.length === 0) {
      report(problemOf(file, 'no document in this file'));
    }
    return documents.flatMap((document) => itemsOf(file, document, report));
  } catch (thrown) {
    report(
      thrown instanceof YamlError && thrown.line !== undefined
        ? problemAt(file, thrown.line, thrown.reason)
        : problemOf(file, thrown instanceof YamlError ? thrown.reason : unreadable(thrown)),
    );
    return [];
  }
}

/** Unpacks a List, as printed by `kubectl get -o yaml`. */
function itemsOf(file: string, document: YamlDocument, report: Report): Item[] {
  const { value } = document;
  const whole = new Item(file, document, [], isMapping(value) ? value : {});
  if (!isMapping(value)) {
    report(whole.problem([], 'expected a mapping with kind'));
    return [];
  }
  for (const { name, line } of document.repetitions()) {
    report(problemAt(file, line, `${name}: duplicate key`));
  }
  const hostile = pathTo('__proto__', value);
  if (hostile !== undefined) {
    report(whole.problem(hostile, 'this key is not allowed'));
    return [];
  }
  if (value.kind !== 'List') {
    return [whole];
  }
  if (!Array.isArray(value.items)) {
    report(whole.problem(['items'], 'expected a list'));
    return [];
  }
  return value.items.map(
    (item: unknown, index) => new Item(file, document, ['items', index], isMapping(item) ? item : {}),
  );
}

function problemAt(
  file: string,
  line: number,
  message: string,
  severity: Problem['severity'] = 'error',
): Problem {
  return { severity, origin: { kind: 'file', file, line }, message };
}

function problemOf(path: string, message: string): Problem {
  return { severity: 'error', message: `${path}: ${message}` };
}

function unreadable(thrown: unknown): string {
  return `could not be read: ${systemErrorText(thrown)}`;
}
