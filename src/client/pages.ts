/** Lists of the API, page by page. */
import type { Client, ClientPathsWithMethod, ParamsOption } from 'openapi-fetch';
import type { paths } from './api-types.ts';
import { EndpointError } from './bounded-fetch.ts';

type Get<Path extends keyof paths> = paths[Path]['get'];
type GetPath = ClientPathsWithMethod<Client<paths>, 'get'>;

/** What each list answers. */
interface AnyPage {
  items: unknown[];
  next: string | null;
}
type PageIn<Operation> = Operation extends {
  responses: { 200: { content: { 'application/json': infer Body extends AnyPage } } };
}
  ? Body
  : never;

/** The paths whose answers are pages of a list, such as `/v1/budgets`. */
export type ListPath = { [Path in GetPath]: [PageIn<Get<Path>>] extends [never] ? never : Path }[GetPath];
/** A page of a list: its `items`, and what else the list tells. */
export type Page<Path extends ListPath> = PageIn<Get<Path>>;
/** `{ path: { project_id: 'climate' }, query: { limit: 1000 } }`; `signal` ends the reading. */
export type ListInit<Path extends ListPath> = Omit<
  NonNullable<ParamsOption<Get<Path>>['params']>,
  'header' | 'cookie'
> & { signal?: AbortSignal };
/** It may be left out where the path needs nothing. */
export type ListArguments<Path extends ListPath> =
  Record<never, never> extends ListInit<Path> ? [init?: ListInit<Path>] : [init: ListInit<Path>];

/** How many pages are read at most: a service that never ends must not keep a program for ever. */
const MAX_PAGES = 10_000;

/** `read`: one page, after the cursor. @throws EndpointError, also where the list has no end */
export async function* allPages(
  read: (after: string | undefined) => Promise<unknown>,
): AsyncGenerator<AnyPage> {
  let after: string | undefined;
  for (let count = 0; count < MAX_PAGES; count += 1) {
    const page = await read(after);
    if (!isPage(page)) {
      throw unexpectedAnswer();
    }
    yield page;
    if (page.next === null) {
      return;
    }
    if (page.next === after) {
      break;
    }
    after = page.next;
  }
  throw new EndpointError('failed', 'the list of the service has no end');
}

function isPage(value: unknown): value is AnyPage {
  return (
    typeof value === 'object' &&
    value !== null &&
    'items' in value &&
    Array.isArray(value.items) &&
    'next' in value &&
    (value.next === null || typeof value.next === 'string')
  );
}

export function unexpectedAnswer(): EndpointError {
  return new EndpointError(
    'failed',
    'the service answered something else than expected; is it another version of blazar-enforcement?',
  );
}
