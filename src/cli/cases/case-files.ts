/** Reads case files, independently of the content of a case. */
import { readdirSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { z } from 'zod';
import type { Problem } from '../../base/errors.ts';
import { YamlDocument } from '../../base/yaml/document.ts';
import { isMapping, type Mapping, type Path, valueAt, YamlError } from '../../base/yaml/tree.ts';
import { nearestName } from '../../config/nearest.ts';
import { readTextFile, systemErrorText } from '../../config/read-file.ts';
import { UsageError } from '../common/output.ts';

/** Limit for a file of cases, in bytes: some pages, not a data set. */
const MAX_BYTES = 1_048_576;
/** More than any handwritten case has. */
export const MAX_TOKENS = 20_000;
/** A file with this key has several cases. The keys beside it are defaults for each case. */
const SEVERAL = 'cases';

interface CasePlace {
  readonly file: string;
  /** The path in the folder without extension; if the file has several cases, plus the name or number. */
  readonly id: string;
}

/** A case, or the problems of its file. */
export type CaseFile<Case> = CasePlace & (ReadCase<Case> | { readonly problems: readonly Problem[] });

/** Where the values of a case are written. */
interface Places {
  /** The line of the node at a path of the case, from 1; if it does not exist, of the nearest node above. */
  readonly lineOf: (path: Path) => number;
  /** The value at a path as written, from `YamlDocument.typed`. */
  readonly typedAt: (path: Path) => unknown;
}

export interface ReadCase<Case> extends CasePlace, Places {
  readonly case: Case;
}

interface WrittenCase extends Places {
  readonly value: unknown;
}

/** Paths of all `.yaml` and `.yml` files in a folder and its subfolders, sorted. @throws UsageError */
export function yamlFilesIn(folder: string): string[] {
  let names: string[];
  try {
    if (!statSync(folder).isDirectory()) {
      throw new UsageError(`${folder}: expected a folder of cases`);
    }
    names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  } catch (thrown) {
    throw thrown instanceof UsageError ? thrown : new UsageError(`${folder}: ${systemErrorText(thrown)}`);
  }
  return names
    .filter((name) => /\.ya?ml$/i.test(name) && !/(?:^|[/\\])(?:\.|node_modules[/\\])/.test(name))
    .sort()
    .map((name) => join(folder, name));
}

/**
 * The cases of one file. With strict schemas, every problem has a line, and unknown keys get a suggestion.
 * `schemaFor`: the schema for a written case.
 */
export function readCases<Case>(
  folder: string,
  file: string,
  schemaFor: (value: unknown) => z.ZodType<Case>,
): CaseFile<Case>[] {
  const id = relative(folder, file).replace(/\.ya?ml$/i, '');
  const problem = (line: number, message: string): Problem => ({
    severity: 'error',
    origin: { kind: 'file', file, line },
    message,
  });
  let document: YamlDocument;
  try {
    document = YamlDocument.parse(readTextFile(file, MAX_BYTES), MAX_TOKENS);
  } catch (thrown) {
    const wrong =
      thrown instanceof YamlError
        ? problem(thrown.line ?? 1, `expected YAML: ${thrown.reason}`)
        : problem(1, `could not be read: ${systemErrorText(thrown)}`);
    return [{ file, id, problems: [wrong] }];
  }
  const repeated = document
    .repetitions()
    .map(({ name, line }) => problem(line, `${name}: this key is there twice`));
  if (repeated.length > 0) {
    return [{ file, id, problems: repeated }];
  }
  const { value } = document;
  if (!isMapping(value) || !Object.hasOwn(value, SEVERAL)) {
    return [checked({ file, id }, { value, ...partOf(document, (path) => path) }, schemaFor(value))];
  }
  const written = casesIn(value, document);
  if (written === undefined) {
    return [{ file, id, problems: [problem(document.lineOf([SEVERAL]), `${SEVERAL}: expected a list`)] }];
  }
  return written.map((one, index) => {
    const name = valueAt(one.value, ['name']);
    const own = typeof name === 'string' && name !== '' ? name : String(index + 1);
    return checked({ file, id: `${id}: ${own}` }, one, schemaFor(one.value));
  });
}

/** The cases of a file with several. `undefined` = not a list, or an empty list. */
function casesIn(value: Mapping, document: YamlDocument): WrittenCase[] | undefined {
  const { [SEVERAL]: list, ...shared } = value;
  if (!Array.isArray(list) || list.length === 0) {
    return undefined;
  }
  return list.map((own: unknown, index) => ({
    value: isMapping(own) ? { ...shared, ...own } : own,
    ...partOf(document, (path) => {
      const [key] = path;
      const isShared =
        typeof key === 'string' && !(isMapping(own) && Object.hasOwn(own, key)) && Object.hasOwn(shared, key);
      return isShared ? path : [SEVERAL, index, ...path];
    }),
  }));
}

/** `placeOf`: maps a path in the case to its path in the document. */
function partOf(document: YamlDocument, placeOf: (path: Path) => Path): Places {
  return {
    lineOf: (path) => document.lineOf(placeOf(path)),
    typedAt: (path) => valueAt(document.typed, placeOf(path)),
  };
}

function checked<Case>(
  place: CasePlace,
  { value, lineOf, typedAt }: WrittenCase,
  schema: z.ZodType<Case>,
): CaseFile<Case> {
  const read = schema.safeParse(value);
  if (read.success) {
    return { ...place, case: read.data, lineOf, typedAt };
  }
  const problems = read.error.issues.flatMap(withoutUnions).flatMap((issue) =>
    explained(issue, schema).map(({ path, message }): Problem => {
      const origin = { kind: 'file', file: place.file, line: lineOf(path) } as const;
      return { severity: 'error', origin, message };
    }),
  );
  return { ...place, problems };
}

function explained(issue: z.core.$ZodIssue, schema: z.ZodType): { path: Path; message: string }[] {
  const path = issue.path.map((step) => (typeof step === 'symbol' ? String(step) : step));
  const where = path.length === 0 ? '' : `${path.join('.')}: `;
  if (issue.code === 'unrecognized_keys') {
    const known = knownKeys(schema, path);
    return issue.keys.map((key) => ({
      path: [...path, key],
      message: `${where}the key ${JSON.stringify(key)} is unknown${nearestName(key, known)}`,
    }));
  }
  return [{ path, message: `${where}${lower(issue.message)}` }];
}

/** Of the alternatives of a union, the one that matched furthest has the most useful issues. */
function withoutUnions(issue: z.core.$ZodIssue): z.core.$ZodIssue[] {
  if (issue.code !== 'invalid_union') {
    return [issue];
  }
  const [best = []] = issue.errors
    .map((issues) =>
      issues
        .map((one) => ({ ...one, path: [...issue.path, ...one.path] }) as z.core.$ZodIssue)
        .flatMap(withoutUnions),
    )
    .sort((a, b) => depthOf(b) - depthOf(a));
  return depthOf(best) > issue.path.length ? best : [issue];
}

function depthOf(issues: readonly z.core.$ZodIssue[]): number {
  return Math.max(0, ...issues.map(({ path, code }) => path.length + (code === 'unrecognized_keys' ? 1 : 0)));
}

function knownKeys(schema: z.ZodType, path: Path): string[] {
  let places: unknown[] = [z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })];
  for (const step of path) {
    places = places.flatMap(alternatives).flatMap((one) => {
      const at = valueAt(one, typeof step === 'number' ? ['items'] : ['properties', step]);
      return at ?? valueAt(one, ['additionalProperties']) ?? [];
    });
  }
  return places.flatMap(alternatives).flatMap((one) => Object.keys(valueAt(one, ['properties']) ?? {}));
}

function alternatives(schema: unknown): unknown[] {
  const any = valueAt(schema, ['anyOf']);
  return Array.isArray(any) ? any.flatMap(alternatives) : [schema];
}

const lower = (text: string) => text.replace(/^Invalid input: /, '');

/** An error in a case, which then cannot be run. */
export class CaseMistake extends Error {
  override readonly name = 'CaseMistake';
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super('a mistake in a case');
    this.problems = problems;
  }

  static at(
    { file, lineOf }: Pick<ReadCase<unknown>, 'file' | 'lineOf'>,
    path: Path,
    message: string,
  ): CaseMistake {
    return new CaseMistake([
      { severity: 'error', origin: { kind: 'file', file, line: lineOf(path) }, message },
    ]);
  }
}
