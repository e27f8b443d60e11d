/** Whole lists, in pages. */
import { type ApiClient, ApiError, type ApiObject, ApiUnreachableError } from './contract.ts';
import { type ListPage, listPage, withoutManagers } from './objects.ts';

const PAGE = 500;
/** More than the pods of the largest clusters, which Kubernetes supports up to 150,000. */
const MAX_OBJECTS = 200_000;
/** Pages may be smaller than asked for, or empty, but not for ever. */
const MAX_PAGES = 2_000;

export interface ObjectList {
  readonly objects: readonly ApiObject[];
  /** From where a watch goes on. */
  readonly resourceVersion: string;
}

export interface ListOptions {
  readonly query?: Readonly<Record<string, string>> | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Default: 500. 0 = everything in one answer. */
  readonly page?: number;
  /** Keeps `metadata.managedFields`, which is half of most objects. Default: true. */
  readonly managedFields?: boolean;
}

/** All objects of a path, as they were at one moment: not before the call. @throws as `listPages` */
export async function listObjects(
  client: ApiClient,
  path: string,
  options: ListOptions = {},
): Promise<ObjectList> {
  const objects: ApiObject[] = [];
  let resourceVersion = '';
  for await (const page of listPages(client, path, options)) {
    for (const item of page.items) {
      objects.push(options.managedFields === false ? withoutManagers(item) : item);
    }
    if (objects.length > MAX_OBJECTS) {
      throw new ApiUnreachableError(`${client.server}: a list of more than ${MAX_OBJECTS} objects`);
    }
    ({ resourceVersion } = page);
  }
  return { objects, resourceVersion };
}

/**
 * The same page by page: a list of 10,000 pods is never in memory at once. Each page is a call of its own, with its own deadline.
 * @throws ApiError also 410, if the moment of the first page was forgotten before the last one: list again @throws ApiUnreachableError
 */
export async function* listPages(
  client: ApiClient,
  path: string,
  { query = {}, signal, page = PAGE }: ListOptions = {},
): AsyncGenerator<ListPage> {
  let continueToken = '';
  for (let pages = 1; pages <= MAX_PAGES; pages += 1) {
    // Without a resourceVersion: then the API server asks etcd, and answers with nothing older than the call.
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

/** Whether the API server has forgotten what is asked for: only a new list helps. */
export function isExpired(thrown: unknown): boolean {
  return thrown instanceof ApiError && (thrown.status === 410 || thrown.reason === 'Expired');
}
