/** Objects by path with the concurrency of an API server, for what a real one cannot be made to show quickly or exactly in time. */
import { ApiError, type ApiRequest } from '../../../src/kubernetes/cluster/api/contract.ts';

// biome-ignore lint/suspicious/noExplicitAny: objects of several kinds, which tests take apart.
export type Stored = any;

export class StoredObjects {
  readonly objects = new Map<string, Stored>();
  #version = 0;

  nextVersion(): string {
    this.#version += 1;
    return String(this.#version);
  }

  put(path: string, object: Stored): Stored {
    const kept = { ...object, metadata: { ...object.metadata, resourceVersion: this.nextVersion() } };
    this.objects.set(path, structuredClone(kept));
    return kept;
  }

  found(path: string): Stored {
    const stored = this.objects.get(path);
    if (stored === undefined) {
      throw new ApiError(404, 'NotFound', `${path} not found`);
    }
    return structuredClone(stored);
  }

  /** What a GET, POST or PUT answers. */
  answer({ method, path, body }: ApiRequest): Stored {
    const sent = body as Stored;
    if (method === 'POST' && sent !== undefined) {
      const at = `${path}/${sent.metadata.name}`;
      if (this.objects.has(at)) {
        throw new ApiError(409, 'AlreadyExists', `${at} already exists`);
      }
      return this.put(at, sent);
    }
    const stored = this.found(path);
    if (method === 'GET' || sent === undefined) {
      return stored;
    }
    if (sent.metadata.resourceVersion !== stored.metadata.resourceVersion) {
      throw new ApiError(409, 'Conflict', `${path} has changed`);
    }
    return this.put(path, sent);
  }
}
