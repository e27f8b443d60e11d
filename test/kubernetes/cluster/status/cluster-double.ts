/** The little of an API server that leaders, status and events need, for what must be exact in time. The proof has the real one. */
import { setImmediate as turn } from 'node:timers/promises';
import {
  type ApiClient,
  ApiError,
  type ApiRequest,
} from '../../../../src/kubernetes/cluster/api/contract.ts';
import type {
  KnownPolicies,
  LivePolicies,
  LivePolicy,
} from '../../../../src/kubernetes/cluster/live/contract.ts';
import { type Stored, StoredObjects } from '../stored-objects.ts';

const POLICIES = '/apis/scheduling.blazar-enforcement/v1alpha1/schedulingpolicies/';

export class ClusterDouble extends StoredObjects {
  readonly calls: ApiRequest[] = [];
  /** Thrown instead of an answer. */
  fault: (request: ApiRequest) => Error | undefined = () => undefined;
  readonly policies = new Map<string, LivePolicy>();
  /** Whether the watch tells of what is written. */
  watches = true;
  readonly #listeners: ((names: readonly string[]) => void)[] = [];

  client(namespace?: string): ApiClient {
    return {
      server: 'https://double',
      namespace,
      serverTime: undefined,
      request: (request) => this.#request(request),
      // biome-ignore lint/correctness/useYield: nobody watches here
      async *watch() {
        throw new Error('nobody watches here');
      },
      close: async () => undefined,
    };
  }

  /** How many wait to hear of changes. */
  get listening(): number {
    return this.#listeners.length;
  }

  get live(): LivePolicies {
    const known: KnownPolicies = { names: [], policies: [], invalid: [] };
    return {
      known,
      policies: this.policies,
      following: { hasList: true, currentAt: 0, problem: undefined },
      onChange: (listener) => {
        this.#listeners.push(listener);
        return () => void this.#listeners.splice(this.#listeners.indexOf(listener), 1);
      },
    };
  }

  /** A policy as a user stores it, or changes it. */
  store(name: string, changes: Partial<LivePolicy> = {}): void {
    const before = this.policies.get(name);
    const generation = (before?.generation ?? 0) + 1;
    this.policies.set(name, {
      name,
      uid: `uid-${name}`,
      status: undefined,
      mistake: undefined,
      leftOut: [],
      ...before,
      generation,
      enforcedGeneration: generation,
      resourceVersion: this.nextVersion(),
      ...changes,
    });
    this.tell(name);
  }

  remove(name: string): void {
    this.policies.delete(name);
    this.tell(name);
  }

  /** As somebody else writes it. */
  writeStatus(name: string, status: unknown): void {
    const policy = this.policies.get(name);
    if (policy !== undefined) {
      this.policies.set(name, { ...policy, status, resourceVersion: this.nextVersion() });
      this.tell(name);
    }
  }

  tell(name: string): void {
    for (const listener of this.#listeners) {
      listener([name]);
    }
  }

  called(method: ApiRequest['method'], part: string): readonly ApiRequest[] {
    return this.calls.filter((call) => call.method === method && call.path.includes(part));
  }

  async #request(request: ApiRequest): Promise<unknown> {
    this.calls.push(request);
    await turn();
    request.signal?.throwIfAborted();
    const fault = this.fault(request);
    if (fault !== undefined) {
      throw fault;
    }
    return request.path.startsWith(POLICIES) ? this.#patch(request) : this.answer(request);
  }

  #patch({ path, body }: ApiRequest): unknown {
    const name = path.slice(POLICIES.length).replace(/\/status$/, '');
    const { metadata, status } = body as Stored;
    const policy = this.policies.get(name);
    if (policy === undefined) {
      throw new ApiError(404, 'NotFound', `${name} not found`);
    }
    if (metadata.resourceVersion !== policy.resourceVersion || metadata.uid !== policy.uid) {
      throw new ApiError(409, 'Conflict', `${name} has changed`);
    }
    if (this.watches) {
      this.writeStatus(name, status);
    }
    return {};
  }
}
