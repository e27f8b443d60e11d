/** Objects of the API, and complete lists of them, in pages. */
import { isMapping, member, valueAt } from '../../../base/yaml/tree.ts';
import { type ApiClient, ApiError, type ApiObject, ApiUnreachableError } from './contract.ts';

const PAGE = 500;
/** More than the pods of the largest clusters, which Kubernetes supports up to 150,000. */
const MAX_OBJECTS = 200_000;
/** Pages may be smaller than requested, or empty, but not forever. */
const MAX_PAGES = 2_000;

export interface ObjectList {
  readonly objects: readonly ApiObject[];
  /** Start version for a watch. */
  readonly resourceVersion: string;
}

interface ListOptions {
  readonly query?: Readonly<Record<string, string>> | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Default: 500. 0 = everything in one answer. */
  readonly page?: number;
}

/** All objects of a path, at one moment that is not before the call. @throws as `listPages` */
export async function listObjects(
  client: ApiClient,
  path: string,
  options: ListOptions = {},
): Promise<ObjectList> {
  const objects: ApiObject[] = [];
  let resourceVersion = '';
  for await (const page of listPages(client, path, options)) {
    for (const item of page.items) {
      objects.push(withoutManagers(item));
    }
    if (objects.length > MAX_OBJECTS) {
      throw new ApiUnreachableError(`${client.server}: a list of more than ${MAX_OBJECTS} objects`);
    }
    ({ resourceVersion } = page);
  }
  return { objects, resourceVersion };
}

/**
 * As `listObjects`, page by page: a list of 10,000 pods is never in memory at once. Each page is a separate
 * call with its own deadline. @throws ApiError also 410, if the moment of the first page has expired: list
 * again @throws ApiUnreachableError
 */
export async function* listPages(
  client: ApiClient,
  path: string,
  { query = {}, signal, page = PAGE }: ListOptions = {},
): AsyncGenerator<ListPage> {
  let continueToken = '';
  for (let pages = 1; pages <= MAX_PAGES; pages += 1) {
    // Without a resourceVersion, the API server reads from etcd, and returns nothing older than the call.
    const answer = await client.request({
      method: 'GET',
      path,
      query: { ...query, limit: String(page), ...(continueToken !== '' && { continue: continueToken }) },
      ...(signal !== undefined && { signal }),
    });
    const found = listPage(answer, client.server);
    yield found;
    if (found.continueToken === '') {
      return;
    }
    if (found.continueToken === continueToken) {
      break;
    }
    ({ continueToken } = found);
  }
  throw new ApiUnreachableError(`${client.server}: the list of ${path} does not end`);
}

/** Whether the requested version has expired on the API server: only a new list helps. */
export function isExpired(thrown: unknown): boolean {
  return thrown instanceof ApiError && (thrown.status === 410 || thrown.reason === 'Expired');
}

const NUMBERS_AND_TEXTS = [
  ['namespace', 'string'],
  ['uid', 'string'],
  ['generation', 'number'],
  ['resourceVersion', 'string'],
] as const;

/** A bookmark has no name. */
export function isApiObject(value: unknown, name: 'named' | 'nameless' = 'named'): value is ApiObject {
  const metadata = isMapping(value) ? member(value, 'metadata') : undefined;
  if (!isMapping(value) || !isMapping(metadata)) {
    return false;
  }
  const called = member(metadata, 'name');
  return (
    (name === 'nameless' || (typeof called === 'string' && called !== '')) &&
    NUMBERS_AND_TEXTS.every(([field, type]) => isOptional(member(metadata, field), type)) &&
    isOptional(member(value, 'kind'), 'string') &&
    isOptional(member(value, 'apiVersion'), 'string')
  );
}

function isOptional(value: unknown, type: 'string' | 'number'): boolean {
  return value === undefined || typeof value === type;
}

interface ListPage {
  readonly items: readonly ApiObject[];
  readonly resourceVersion: string;
  /** For the next page; empty = this is the last. */
  readonly continueToken: string;
}

/** @throws ApiUnreachableError if it is not a list of objects */
export function listPage(answer: unknown, server: string): ListPage {
  const resourceVersion = valueAt(answer, ['metadata', 'resourceVersion']);
  const continueToken = valueAt(answer, ['metadata', 'continue']) ?? '';
  // Go writes an empty list as null.
  const items = valueAt(answer, ['items']) ?? [];
  if (
    !isMapping(answer) ||
    typeof resourceVersion !== 'string' ||
    typeof continueToken !== 'string' ||
    !Array.isArray(items) ||
    !items.every((item) => isApiObject(item))
  ) {
    throw new ApiUnreachableError(`${server}: the answer is not a list of objects`);
  }
  return { items: items.map((item) => withKind(item, answer)), resourceVersion, continueToken };
}

/** Drops managedFields, half of most objects. Changes the object: copying a whole list would cost more. */
function withoutManagers<Parsed extends ApiObject>(object: Parsed): Parsed {
  const metadata: ApiObject['metadata'] & { managedFields?: unknown } = object.metadata;
  if (metadata.managedFields !== undefined) {
    // Not `delete`: V8 would then keep the object as a table.
    metadata.managedFields = undefined;
  }
  return object;
}

/** In lists of built-in kinds, only the list has the kind of its items. */
function withKind(item: ApiObject, { kind, apiVersion }: { readonly [name: string]: unknown }): ApiObject {
  const own = typeof kind === 'string' ? kind.replace(/List$/, '') : '';
  return item.kind !== undefined || own === '' || typeof apiVersion !== 'string'
    ? item
    : { ...item, kind: own, apiVersion };
}
