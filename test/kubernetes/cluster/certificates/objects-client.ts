/** A few objects, with the concurrency of an API server, for what a real one cannot be made to show quickly. */
import {
  type ApiClient,
  ApiError,
  type ApiRequest,
} from '../../../../src/kubernetes/cluster/api/contract.ts';

// biome-ignore lint/suspicious/noExplicitAny: objects of several kinds, which tests take apart.
type Stored = any;

const MUTATING = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/hooks';
const VALIDATING = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/hooks';
const SECRET = '/api/v1/namespaces/ours/secrets/certificate';

export class ObjectsClient implements ApiClient {
  readonly server = 'https://double';
  readonly namespace = 'ours';
  readonly objects = new Map<string, Stored>();
  readonly calls: string[] = [];
  /** Called before each; what it throws is the answer. */
  before: (request: ApiRequest) => void = () => undefined;
  #version = 1;

  constructor() {
    this.put(SECRET, { metadata: { name: 'certificate' }, type: 'Opaque' });
    for (const path of [MUTATING, VALIDATING]) {
      this.put(path, { metadata: { name: 'hooks' }, webhooks: [{ clientConfig: {} }, { clientConfig: {} }] });
    }
  }

  put(path: string, object: Stored): Stored {
    this.#version += 1;
    const stored = structuredClone(object);
    stored.metadata.resourceVersion = String(this.#version);
    this.objects.set(path, stored);
    return structuredClone(stored);
  }

  get secret(): Record<string, string> {
    const data: Record<string, string> = this.objects.get(SECRET)?.data ?? {};
    return Object.fromEntries(
      Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]),
    );
  }

  set secret(data: Record<string, string>) {
    const encoded = Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')]);
    this.put(SECRET, { ...this.objects.get(SECRET), data: Object.fromEntries(encoded) });
  }

  /** `caBundle` of all webhooks. */
  get bundles(): string[] {
    return [MUTATING, VALIDATING].flatMap((path) =>
      (this.objects.get(path)?.webhooks ?? []).map(({ clientConfig }: Stored) =>
        Buffer.from(clientConfig.caBundle ?? '', 'base64').toString(),
      ),
    );
  }

  removeConfigurations(): void {
    this.objects.delete(MUTATING);
    this.objects.delete(VALIDATING);
  }

  async request(request: ApiRequest): Promise<unknown> {
    const { method, path, body } = request;
    this.calls.push(`${method} ${path}`);
    this.before(request);
    if (method === 'POST') {
      const created = body as Stored;
      return this.put(`${path}/${created.metadata.name}`, created);
    }
    const found = this.objects.get(path);
    if (found === undefined) {
      throw new ApiError(404, 'NotFound', 'not found');
    }
    if (method === 'PUT') {
      if ((body as Stored).metadata.resourceVersion !== found.metadata.resourceVersion) {
        throw new ApiError(409, 'Conflict', 'changed');
      }
      return this.put(path, body);
    }
    if (method === 'PATCH') {
      const [test, ...changes] = body as Stored[];
      if (test.value !== found.metadata.resourceVersion) {
        throw new ApiError(422, 'Invalid', 'test failed');
      }
      const changed = structuredClone(found);
      for (const { path: where, value } of changes) {
        changed.webhooks[Number(where.split('/')[2])].clientConfig.caBundle = value;
      }
      return this.put(path, changed);
    }
    return structuredClone(found);
  }

  watch(): never {
    throw new Error('nobody watches here');
  }

  async close(): Promise<void> {}
}
