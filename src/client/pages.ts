/** Lists of the API, page by page. */
import type { Client, ClientPathsWithMethod, ParamsOption } from 'openapi-fetch';
import type { paths } from './api-types.ts';
import { EndpointError } from './bounded-fetch.ts';

type Get<Path extends keyof paths> = paths[Path]['get'];
type GetPath = ClientPathsWithMethod<Client<paths>, 'get'>;

/** The answer of any list. */
interface AnyPage {
  items: unknown[];
  next: string | null;
}
type PageIn<Operation> = Operation extends {
  responses: { 200: { content: { 'application/json': infer Body extends AnyPage } } };
}
  ? Body
  : never;

/** The paths that return pages of a list, such as `/v1/budgets`. */
export type ListPath = { [Path in GetPath]: [PageIn<Get<Path>>] extends [never] ? never : Path }[GetPath];
/** A page of a list: its `items`, and the list's other attributes. */
export type Page<Path extends ListPath> = PageIn<Get<Path>>;
/** `{ path: { project_id: 'climate' }, query: { limit: 1000 } }`; `signal` aborts reading. */
export type ListInit<Path extends ListPath> = Omit<
  NonNullable<ParamsOption<Get<Path>>['params']>,
  'header' | 'cookie'
> & { signal?: AbortSignal };
/** Optional if the path needs no parameters. */
export type ListArguments<Path extends ListPath> =
  Record<never, never> extends ListInit<Path> ? [init?: ListInit<Path>] : [init: ListInit<Path>];

/** Maximum number of pages: a list without an end must not run forever. */
const MAX_PAGES = 10_000;

/** `read`: returns the page after a cursor. @throws EndpointError, also if the list has no end */
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
