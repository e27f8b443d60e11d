/** A few objects, with the concurrency of an API server, for what a real one cannot be made to show quickly. */
import {
  type ApiClient,
  ApiError,
  type ApiRequest,
} from '../../../../src/kubernetes/cluster/api/contract.ts';
import { type Stored, StoredObjects } from '../stored-objects.ts';

const MUTATING = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/hooks';
const VALIDATING = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/hooks';
const SECRET = '/api/v1/namespaces/ours/secrets/certificate';

export class ObjectsClient extends StoredObjects implements ApiClient {
  readonly server = 'https://double';
  readonly namespace = 'ours';
  serverTime: number | undefined;
  /** Called before each; what it throws is the answer. */
  before: (request: ApiRequest) => void = () => undefined;

  constructor() {
    super();
    this.put(SECRET, { metadata: { name: 'certificate' }, type: 'Opaque' });
    for (const path of [MUTATING, VALIDATING]) {
      this.put(path, { metadata: { name: 'hooks' }, webhooks: [{ clientConfig: {} }, { clientConfig: {} }] });
    }
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
    this.before(request);
    return request.method === 'PATCH' ? this.#patch(request) : this.answer(request);
  }

  #patch({ path, body }: ApiRequest): unknown {
    const found = this.found(path);
    const [test, ...changes] = body as Stored[];
    if (test.value !== found.metadata.resourceVersion) {
      throw new ApiError(422, 'Invalid', 'test failed');
    }
    for (const { path: where, value } of changes) {
      found.webhooks[Number(where.split('/')[2])].clientConfig.caBundle = value;
    }
    return this.put(path, found);
  }

  watch(): never {
    throw new Error('nobody watches here');
  }

  async close(): Promise<void> {}
}
