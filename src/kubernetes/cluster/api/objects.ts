/** What all objects and lists of the API have in common. Checked, not copied: an answer may hold hundreds. */
import { isMapping, member } from '../../../yaml/tree.ts';
import { type ApiObject, ApiUnreachableError } from './contract.ts';

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

export interface ListPage {
  readonly items: readonly ApiObject[];
  readonly resourceVersion: string;
  /** Of the next page; empty = this is the last. */
  readonly continueToken: string;
}

/** @throws ApiUnreachableError if it is not a list of objects */
export function listPage(answer: unknown, server: string): ListPage {
  const metadata = isMapping(answer) ? member(answer, 'metadata') : undefined;
  const resourceVersion = isMapping(metadata) ? member(metadata, 'resourceVersion') : undefined;
  const continueToken = (isMapping(metadata) ? member(metadata, 'continue') : undefined) ?? '';
  // Go writes an empty list as null.
  const items = (isMapping(answer) ? member(answer, 'items') : undefined) ?? [];
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

/** Who has set which field is half of most objects. Changes the object: a copy of a whole list would cost more. */
export function withoutManagers<Parsed extends ApiObject>(object: Parsed): Parsed {
  const metadata: ApiObject['metadata'] & { managedFields?: unknown } = object.metadata;
  if (metadata.managedFields !== undefined) {
    // Without `delete`, after which V8 would keep the object as a table.
    metadata.managedFields = undefined;
  }
  return object;
}

/** In lists of built-in kinds only the list says what its items are. */
function withKind(item: ApiObject, { kind, apiVersion }: { readonly [name: string]: unknown }): ApiObject {
  const own = typeof kind === 'string' ? kind.replace(/List$/, '') : '';
  return item.kind !== undefined || own === '' || typeof apiVersion !== 'string'
    ? item
    : { ...item, kind: own, apiVersion };
}
