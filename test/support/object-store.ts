/** The storage of an API server: objects with versions and generations, and changes since a compaction. */
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';

export interface StoredObject {
  apiVersion?: string;
  kind?: string;
  metadata: {
    name: string;
    namespace?: string;
    uid?: string;
    generation?: number;
    resourceVersion?: string;
    [field: string]: unknown;
  };
  spec?: unknown;
  status?: unknown;
  [field: string]: unknown;
}

interface StoredEvent {
  readonly version: number;
  readonly collection: string;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: StoredObject;
}

interface Served {
  readonly status: number;
  readonly body: object;
}

/** `/apis/group/v1[/namespaces/ns]/resource[/name[/status]]`; a namespace is itself a resource. */
const PATH =
  /^(?<base>\/api\/v1|\/apis\/[^/]+\/[^/]+)(?<space>\/namespaces\/(?<namespace>[^/]+)(?=\/(?!status$)))?\/(?<resource>[^/]+)(\/(?<name>[^/]+))?(?<sub>\/status)?$/;

export class ObjectStore {
  readonly #objects = new Map<string, StoredObject>();
  #events: StoredEvent[] = [];
  #compacted = 0;
  version = 100;
  /** Called for each change, with the collection of the object. */
  onEvent: (collection: string, type: StoredEvent['type'], object: StoredObject) => void = () => undefined;

  resourceOf(path: string): string {
    return PATH.exec(path)?.groups?.resource ?? '';
  }

  /** Creates or replaces an object, like an administrator. Returns the stored object. */
  put(collection: string, object: StoredObject): StoredObject {
    const path = `${collection}/${object.metadata.name}`;
    return this.#objects.has(path)
      ? this.#store(path, {
          ...object,
          metadata: { ...this.#objects.get(path)?.metadata, ...object.metadata },
        })
      : this.#store(path, object);
  }

  remove(collection: string, name: string): void {
    const path = `${collection}/${name}`;
    const object = this.#objects.get(path);
    if (object !== undefined) {
      this.#objects.delete(path);
      this.version += 1;
      const last = { ...object, metadata: { ...object.metadata, resourceVersion: String(this.version) } };
      this.#tell(collection, 'DELETED', last);
    }
  }

  get(collection: string, name: string): StoredObject | undefined {
    return this.#objects.get(`${collection}/${name}`);
  }

  /** Discards all changes: older watches and continued lists get a 410. */
  compact(): void {
    this.version += 1;
    this.#compacted = this.version;
    this.#events = [];
  }

  /** The changes after a version; `undefined` = they are discarded. */
  since(collection: string, version: number): { type: string; object: StoredObject }[] | undefined {
    return version < this.#compacted
      ? undefined
      : this.#events
          .filter((event) => event.version > version && isIn(event.collection, collection))
          .map(({ type, object }) => ({ type, object }));
  }

  serve(method: string, path: string, query: URLSearchParams, body: string): Served {
    const { base = '', space = '', resource = '', name, sub } = PATH.exec(path)?.groups ?? {};
    if (resource === '') {
      return failure(404, 'NotFound', 'the server could not find the requested resource');
    }
    const collection = `${base}${space}/${resource}`;
    if (name === undefined) {
      return method === 'GET'
        ? this.#list(collection, query)
        : this.#create(collection, JSON.parse(body) as StoredObject);
    }
    const at = `${collection}/${name}`;
    const before = this.#objects.get(at);
    if (before === undefined) {
      return failure(404, 'NotFound', `${resource} "${name}" not found`);
    }
    if (method === 'GET') {
      return { status: 200, body: before };
    }
    if (method === 'DELETE') {
      this.remove(collection, name);
      return { status: 200, body: { kind: 'Status', apiVersion: 'v1', status: 'Success' } };
    }
    const given = JSON.parse(body) as StoredObject;
    const wanted = method === 'PATCH' ? (merged(before, given) as StoredObject) : given;
    const version = given.metadata?.resourceVersion;
    if (version !== undefined && version !== before.metadata.resourceVersion) {
      const message = `Operation cannot be fulfilled on ${resource} "${name}": the object has been modified`;
      return failure(409, 'Conflict', message);
    }
    const metadata = { ...wanted.metadata, uid: before.metadata.uid, generation: before.metadata.generation };
    const changed =
      sub === undefined
        ? { ...wanted, metadata, ...('status' in before && { status: before.status }) }
        : { ...before, status: wanted.status };
    return { status: 200, body: this.#store(at, changed as StoredObject) };
  }

  #create(collection: string, { metadata, ...object }: StoredObject): Served {
    const { generateName, name = `${String(generateName)}${randomUUID().slice(0, 5)}` } = metadata as {
      readonly generateName?: string;
      readonly name?: string;
    };
    const path = `${collection}/${name}`;
    if (this.#objects.has(path)) {
      return failure(409, 'AlreadyExists', `"${name}" already exists`);
    }
    return { status: 201, body: this.#store(path, { ...object, metadata: { ...metadata, name } }) };
  }

  #list(collection: string, query: URLSearchParams): Served {
    const from = query.get('continue');
    const [version, start] = from === null ? [this.version, ''] : (JSON.parse(from) as [number, string]);
    if (version < this.#compacted) {
      return failure(410, 'Expired', 'The provided continue parameter is too old.');
    }
    const field = /^metadata\.name=(.+)$/.exec(query.get('fieldSelector') ?? '')?.[1];
    const all = [...this.#objects]
      .filter(
        ([path, { metadata }]) =>
          isIn(path.slice(0, path.lastIndexOf('/')), collection) &&
          (field ?? metadata.name) === metadata.name,
      )
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .filter(([path]) => path > start);
    const limit = Number(query.get('limit') ?? 0) || all.length;
    const last = all[limit - 1]?.[0];
    const rest =
      all.length > limit && last !== undefined ? { continue: JSON.stringify([version, last]) } : {};
    const items = all.slice(0, limit).map(([, object]) => object);
    return {
      status: 200,
      body: {
        kind: 'List',
        apiVersion: 'v1',
        metadata: { resourceVersion: String(version), ...rest },
        items,
      },
    };
  }

  #store(path: string, object: StoredObject): StoredObject {
    const before = this.#objects.get(path);
    const { namespace } = PATH.exec(path)?.groups ?? {};
    const metadata = {
      uid: randomUUID(),
      creationTimestamp: new Date().toISOString(),
      ...(namespace !== undefined && { namespace }),
      ...object.metadata,
    };
    const spec = isDeepStrictEqual(before?.spec, object.spec);
    metadata.generation = before === undefined ? 1 : (before.metadata.generation ?? 1) + (spec ? 0 : 1);
    metadata.resourceVersion = before?.metadata.resourceVersion ?? '';
    const stored = structuredClone({ ...object, metadata }) as StoredObject;
    if (before !== undefined && isDeepStrictEqual(stored, before)) {
      // Like a real one: an equal object is not a change.
      return before;
    }
    this.version += 1;
    stored.metadata.resourceVersion = String(this.version);
    this.#objects.set(path, stored);
    this.#tell(path.slice(0, path.lastIndexOf('/')), before === undefined ? 'ADDED' : 'MODIFIED', stored);
    return stored;
  }

  #tell(collection: string, type: StoredEvent['type'], object: StoredObject): void {
    this.#events.push({ version: this.version, collection, type, object });
    this.onEvent(collection, type, object);
  }
}

/** Whether a collection is the wanted one, or a namespace of it. */
export function isIn(collection: string, wanted: string): boolean {
  return collection === wanted || collection.replace(/\/namespaces\/[^/]+(?=\/)/, '') === wanted;
}

/** RFC 7386. */
function merged(value: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) {
    return patch;
  }
  const result: Record<string, unknown> =
    typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
  for (const [name, item] of Object.entries(patch)) {
    if (item === null) {
      delete result[name];
    } else {
      result[name] = merged(result[name], item);
    }
  }
  return result;
}

function failure(code: number, reason: string, message: string): Served {
  return {
    status: code,
    body: { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, code },
  };
}
