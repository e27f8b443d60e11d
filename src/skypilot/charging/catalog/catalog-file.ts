/** Reads price catalogs: CSV as in `~/.sky/catalogs`. An unchanged file is not read again. Source: SkyPilot 0.13, `sky/catalog/common.py`. */
import { isUtf8 } from 'node:buffer';
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { pipeline, Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { CsvError, Info, Parser } from 'csv-parse';
import { LRUCache } from 'lru-cache';
import { ConfigurationError, type Problem } from '../../../base/errors.ts';
import { wholeOf } from '../../../base/growing-buffer.ts';
import type { SectionProblem } from '../../../config/option-groups.ts';
import { fileState, systemErrorText } from '../../../config/read-file.ts';
import { showText } from '../../../config/secret.ts';
import { canonicalCloud, OWN_CLUSTERS } from '../../task/infra.ts';
import { Catalog } from './catalog.ts';
import { MAX_PRICE, type Machine, Machines, parsePrice } from './machines.ts';

/** SkyPilot's largest catalog has some 30 MB. */
const MAX_CATALOG_BYTES = 64 * 1024 * 1024;
const MAX_CATALOG_LINES = 500_000;
/** In characters: the column `GpuInfo` is long. */
const LONGEST_LINE = 65_536;
const MAX_MISTAKES = 20;
const MAX_NAME = 200;
/** In bytes. Parsing yields after each piece, so that other requests need not wait for a whole file. */
const PIECE = 65_536;
const LINE_BREAK = 10;
const NOT_TEXT = 'expected UTF-8, got other bytes';

const COLUMNS = [
  ...(['InstanceType', 'AcceleratorName', 'AcceleratorCount', 'vCPUs'] as const),
  ...(['MemoryGiB', 'Price', 'SpotPrice', 'Region'] as const),
];
type Column = (typeof COLUMNS)[number];

/** A mistake in a file. `line`: `undefined` = it concerns the whole file. */
interface CatalogMistake {
  readonly line: number | undefined;
  readonly message: string;
}

/** Never rejects: the first twenty mistakes are in `mistakes`. */
export async function readCatalogFile(
  path: string,
): Promise<{ readonly machines: readonly Machine[]; readonly mistakes: readonly CatalogMistake[] }> {
  const machines = new Machines();
  const mistakes: CatalogMistake[] = [];
  let file: FileHandle | undefined;
  try {
    // Without `O_NONBLOCK`, opening a pipe would wait for its writer.
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const bytes = await bytesOf(file);
    if (bytes.length === 0) {
      mistakes.push({ line: 1, message: 'expected the names of the columns, got an empty file' });
    } else if (bytes.at(-1) !== LINE_BREAK) {
      const line = bytes.toString('latin1').split('\n').length;
      mistakes.push({ line, message: 'expected a line break at the end of the file: it is cut off' });
    } else {
      await readLines(bytes, machines, mistakes);
    }
  } catch (thrown) {
    mistakes.push({ line: undefined, message: systemErrorText(thrown) });
  } finally {
    await file?.close();
  }
  return { machines: mistakes.length === 0 ? machines.list() : [], mistakes };
}

async function bytesOf(file: FileHandle): Promise<Buffer> {
  const before = await file.stat();
  if (!before.isFile()) {
    throw new Error('expected a file');
  }
  const stream = file.createReadStream({ autoClose: false, highWaterMark: 1024 * 1024 });
  const tooLong = () => new Error(`expected at most ${MAX_CATALOG_BYTES} bytes`);
  const bytes = await wholeOf(stream, MAX_CATALOG_BYTES, tooLong);
  const after = await file.stat();
  if (after.size !== before.size || after.mtimeMs !== before.mtimeMs) {
    throw new Error('it changed while it was read');
  }
  return bytes;
}

const SYNTAX: Readonly<Record<string, string>> = {
  CSV_QUOTE_NOT_CLOSED: 'a quote is opened and never closed',
  CSV_INVALID_CLOSING_QUOTE: 'a quote is closed in the middle of a cell',
  INVALID_OPENING_QUOTE: 'a quote is opened in the middle of a cell',
  CSV_MAX_RECORD_SIZE: `expected lines of at most ${LONGEST_LINE} characters`,
};

async function readLines(bytes: Buffer, machines: Machines, mistakes: CatalogMistake[]): Promise<void> {
  const { parse } = await import('csv-parse');
  const options = { bom: true, relax_column_count: true, info: true, skip_empty_lines: true };
  const parser: Parser = parse({ ...options, max_record_size: LONGEST_LINE });
  // Bytes that are not UTF-8 are read as U+FFFD.
  const isText = isUtf8(bytes);
  const isWrong = (cell: string) => cell.includes('\0') || (!isText && cell.includes('\ufffd'));
  let places: ReadonlyMap<Column, number> | undefined;
  let width = 0;
  let line = 1;
  let lines = 0;
  pipeline(Readable.from(pieces(bytes)), parser, () => {});
  try {
    for await (const { record: cells, info } of parser as AsyncIterable<{ record: string[]; info: Info }>) {
      if (cells.some(isWrong)) {
        mistakes.push({ line, message: NOT_TEXT });
        return;
      }
      if (places === undefined) {
        places = placesOf(cells, mistakes);
        width = cells.length;
      } else if (cells.length !== width) {
        mistakes.push({ line, message: `expected ${width} cells, got ${cells.length}` });
      } else {
        const at = places;
        readLine((column) => cells[at.get(column) ?? -1]?.trim() ?? '', line, machines, mistakes);
        lines += 1;
      }
      // The parser counts lines up to the end of a record, which may span several.
      line = info.lines + 1;
      if (lines > MAX_CATALOG_LINES) {
        mistakes.push({ line: undefined, message: `expected at most ${MAX_CATALOG_LINES} lines` });
      }
      if (mistakes.length >= MAX_MISTAKES || lines > MAX_CATALOG_LINES || places.size < COLUMNS.length) {
        return;
      }
    }
  } catch (thrown) {
    const { code, lines: at } = thrown as CsvError & { readonly lines?: number };
    if (typeof code !== 'string') {
      throw thrown;
    }
    mistakes.push({ line: at ?? line, message: SYNTAX[code] ?? 'expected CSV' });
    return;
  } finally {
    parser.destroy();
  }
  if (mistakes.length === 0 && !isText) {
    mistakes.push({ line: undefined, message: NOT_TEXT });
  }
  if (lines === 0) {
    mistakes.push({ line, message: 'expected a line for each machine, got none' });
  }
}

async function* pieces(bytes: Buffer): AsyncIterable<Buffer> {
  for (let at = 0; at < bytes.length; at += PIECE) {
    yield bytes.subarray(at, at + PIECE);
    await nextTurn();
  }
}

function placesOf(names: readonly string[], mistakes: CatalogMistake[]): ReadonlyMap<Column, number> {
  const trimmed = names.map((name) => name.trim());
  for (const name of new Set(trimmed.filter((one, index) => trimmed.indexOf(one) !== index))) {
    mistakes.push({ line: 1, message: `expected the column ${showText(name.slice(0, 100))} once` });
  }
  const found = COLUMNS.flatMap((column): [Column, number][] => {
    const index = trimmed.indexOf(column);
    if (index === -1) {
      mistakes.push({ line: 1, message: `expected a column ${column}` });
    }
    return index === -1 ? [] : [[column, index]];
  });
  return mistakes.length > 0 ? new Map() : new Map(found);
}

const SIZE = /^\d{1,9}(?:\.\d{1,20})?(?:e[+-]?\d{1,2})?$/i;

function readLine(
  cell: (column: Column) => string,
  line: number,
  machines: Machines,
  mistakes: CatalogMistake[],
): void {
  const before = mistakes.length;
  const wrong = (column: Column, expected: string) =>
    mistakes.push({
      line,
      message: `${column}: expected ${expected}, got ${showText(cell(column).slice(0, 100))}`,
    });
  const name = (column: Column) => {
    if (cell(column).length > MAX_NAME) {
      wrong(column, `at most ${MAX_NAME} characters`);
    }
    return cell(column).toLowerCase();
  };
  const size = (column: Column) => {
    if (cell(column) !== '' && !SIZE.test(cell(column))) {
      wrong(column, 'a number, 0 or more');
    }
    return cell(column) === '' ? undefined : Number(cell(column));
  };
  const price = (column: Column) => {
    const parsed = cell(column) === '' ? undefined : parsePrice(cell(column));
    if (cell(column) !== '' && parsed === undefined) {
      wrong(column, `a price for each hour from 0 to ${MAX_PRICE}`);
    }
    return parsed;
  };
  const found = {
    instanceType: name('InstanceType'),
    accelerator: name('AcceleratorName'),
    count: size('AcceleratorCount') ?? 0,
    vcpus: size('vCPUs'),
    memory: size('MemoryGiB'),
    price: price('Price'),
    spot: price('SpotPrice'),
    region: name('Region'),
  };
  if (found.instanceType === '' && found.accelerator === '') {
    wrong('InstanceType', 'an instance type or an accelerator');
  }
  if (found.accelerator !== '' && found.count <= 0) {
    wrong('AcceleratorCount', 'a number greater than 0');
  }
  if (mistakes.length === before) {
    machines.add(found);
  }
}

const CLOUDS = new Set(
  `aws azure cudo do fluidstack gcp hyperbolic ibm lambda mithril nebius oci paperspace primeintellect runpod scp seeweb shadeform vast verda vsphere yotta`.split(
    ' ',
  ),
);

/** Warnings of entries such as `awss/us-east-1`, in any spelling. A newer SkyPilot may have such a cloud. */
export function unknownClouds(entries: readonly string[], option: string, effect: string): Problem[] {
  const unknown = entries.filter((entry) => {
    const cloud = canonicalCloud(entry.replace(/\/.*/, ''));
    return !CLOUDS.has(cloud) && !OWN_CLUSTERS.has(cloud);
  });
  return unknown.map((entry) => ({
    severity: 'warning',
    section: 'skypilot',
    option,
    message: `${entry.slice(0, 100)} ${effect}: SkyPilot has no such cloud`,
  }));
}

/** Cloud → file, as the operator writes them. */
type CatalogFiles = Readonly<Record<string, string>>;

/** By cloud. @throws ConfigurationError with what `catalogProblems` returns */
export async function openCatalogs(
  files: CatalogFiles,
  option: string,
): Promise<ReadonlyMap<string, Catalog>> {
  const { catalogs, problems } = await readCatalogs(files, option);
  if (problems.length > 0) {
    throw new ConfigurationError(
      problems.map((problem) => ('severity' in problem ? problem : { severity: 'error', ...problem })),
    );
  }
  return catalogs;
}

/** Mistakes in the names of clouds and in the files, each with its line. */
export async function catalogProblems(
  files: CatalogFiles,
  option: string,
): Promise<(Problem | SectionProblem)[]> {
  return (await readCatalogs(files, option)).problems;
}

async function readCatalogs(files: CatalogFiles, option: string) {
  const catalogs = new Map<string, Catalog>();
  const problems: (Problem | SectionProblem)[] = cloudProblems(files, option);
  for (const [name, path] of problems.length > 0 ? [] : Object.entries(files)) {
    const { catalog, mistakes } = await readOnce(canonicalCloud(name), path);
    catalogs.set(canonicalCloud(name), catalog);
    for (const { line, message } of mistakes) {
      problems.push(
        line === undefined
          ? { option, message: `${showText(path)}: ${message}` }
          : { severity: 'error', origin: { kind: 'file', file: path, line }, message },
      );
    }
  }
  return { catalogs, problems };
}

function cloudProblems(files: CatalogFiles, option: string): SectionProblem[] {
  const names = Object.keys(files);
  return names.flatMap((name): SectionProblem[] => {
    const cloud = canonicalCloud(name);
    if (OWN_CLUSTERS.has(cloud)) {
      const message = `${showText(name)} has no catalog; give rates instead, such as ${cloud}/A100:2 or ${cloud}/*:0`;
      return [{ option, message }];
    }
    if (!CLOUDS.has(cloud)) {
      const message = `expected clouds, each one of ${[...CLOUDS].join(', ')}, got ${showText(name)}`;
      return [{ option, message }];
    }
    return names.some((other) => other !== name && canonicalCloud(other) === cloud)
      ? [{ option, message: `expected one file for each cloud, got several for ${cloud}` }]
      : [];
  });
}

interface Opened {
  readonly catalog: Catalog;
  readonly mistakes: readonly CatalogMistake[];
}

/** A check of a configuration and its policy read the same files; a reload mostly finds them unchanged. */
const known = new LRUCache<string, { readonly state: string; readonly opened: Promise<Opened> }>({ max: 50 });

async function readOnce(cloud: string, path: string): Promise<Opened> {
  const key = `${cloud}:${path}`;
  const state = await fileState(path);
  const before = known.get(key);
  if (before !== undefined && before.state === state) {
    return before.opened;
  }
  const opened = readCatalogFile(path).then(({ machines, mistakes }) => ({
    catalog: new Catalog(cloud, machines),
    mistakes,
  }));
  if (state !== undefined) {
    known.set(key, { state, opened });
  }
  // The mistake may be temporary.
  if ((await opened).mistakes.length > 0) {
    known.delete(key);
  }
  return opened;
}
