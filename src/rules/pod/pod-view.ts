/** Pods as rules see them. What is missing in a pod is missing for a rule. */
import type { Mapping } from '../../base/yaml/tree.ts';
import { EvaluationError } from '../cel/frame.ts';
import { JsonMap, Timestamp } from '../cel/values.ts';
import { type Amounts, amountsOf, listOf, mappingOf, podRequests } from './requests.ts';

export interface PodRequestParts {
  readonly operation: 'create' | 'update';
  /** `Pod`, or what has such pods: `DaemonSet`, `Deployment`, … */
  readonly kind: string;
  /** As it would be stored, with defaults. */
  readonly pod: object;
  readonly namespace: string;
  /** Missing if the API server does not say it. */
  readonly username: string | undefined;
  readonly groups: readonly string[];
  readonly now: Date;
  /** The pod is one that a controller will create: who that is, and what it calls the pod, is not known. Default: no. */
  readonly isLater?: boolean;
}

export class PodRequestInfo {
  readonly operation: string;
  readonly kind: string;

  constructor({ operation, kind }: Pick<PodRequestParts, 'operation' | 'kind'>) {
    this.operation = operation;
    this.kind = kind;
  }
}

export class PodUserView {
  readonly #parts: Pick<PodRequestParts, 'username' | 'groups' | 'isLater'>;

  constructor(parts: Pick<PodRequestParts, 'username' | 'groups' | 'isLater'>) {
    this.#parts = parts;
  }

  get name(): string | undefined {
    return this.#known().username;
  }

  get groups(): readonly string[] {
    return this.#known().groups;
  }

  #known(): Pick<PodRequestParts, 'username' | 'groups'> {
    if (this.#parts.isLater === true) {
      throw new NotYetKnownError('who will create the pods is not known');
    }
    return this.#parts;
  }
}

export class ContainerView {
  readonly #raw: Mapping;
  readonly isInit: boolean;

  constructor(raw: unknown, isInit: boolean) {
    this.#raw = mappingOf(raw);
    this.isInit = isInit;
  }

  get name(): string | undefined {
    return textOf(this.#raw.name);
  }

  get image(): string | undefined {
    return textOf(this.#raw.image);
  }

  get requests(): Amounts {
    return amountsOf(this.#raw.resources);
  }

  get attributes(): JsonMap {
    return new JsonMap(this.#raw);
  }
}

/** Of Nvidia, AMD and Intel, whole ones and parts: `nvidia.com/gpu`, `nvidia.com/mig-1g.5gb`, `gpu.intel.com/i915`. */
const GPU = /gpu|\/mig-/i;

export class PodView {
  readonly namespace: string;
  readonly #metadata: Mapping;
  readonly #spec: Mapping;
  readonly #isLater: boolean;
  #requests: Amounts | undefined;
  #containers: readonly ContainerView[] | undefined;

  constructor(pod: object, namespace: string, isLater = false) {
    this.namespace = namespace;
    this.#isLater = isLater;
    const { metadata, spec } = pod as Mapping;
    this.#metadata = mappingOf(metadata);
    this.#spec = mappingOf(spec);
  }

  get name(): string | undefined {
    if (this.#isLater) {
      throw new NotYetKnownError('what the pods will be called is not known');
    }
    return textOf(this.#metadata.name) ?? textOf(this.#metadata.generateName);
  }

  get labels(): JsonMap {
    return new JsonMap(mappingOf(this.#metadata.labels));
  }

  get annotations(): JsonMap {
    return new JsonMap(mappingOf(this.#metadata.annotations));
  }

  get metadata(): JsonMap {
    return new JsonMap(this.#metadata);
  }

  get spec(): JsonMap {
    return new JsonMap(this.#spec);
  }

  get serviceAccount(): string {
    return textOf(this.#spec.serviceAccountName) || textOf(this.#spec.serviceAccount) || 'default';
  }

  /** Init containers first. */
  get containers(): readonly ContainerView[] {
    this.#containers ??= [
      ...listOf(this.#spec.initContainers).map((one) => new ContainerView(one, true)),
      ...listOf(this.#spec.containers).map((one) => new ContainerView(one, false)),
      ...listOf(this.#spec.ephemeralContainers).map((one) => new ContainerView(one, false)),
    ];
    return this.#containers;
  }

  get requests(): Amounts {
    this.#requests ??= podRequests(this.#spec);
    return this.#requests;
  }

  get gpus(): Amounts {
    return new Map([...this.requests].filter(([name, amount]) => GPU.test(name) && amount > 0));
  }

  get claims(): bigint {
    return BigInt(listOf(this.#spec.resourceClaims).length);
  }
}

export class PodActivation {
  readonly now: Timestamp;
  readonly request: PodRequestInfo;
  readonly user: PodUserView;
  readonly pod: PodView;

  constructor(parts: PodRequestParts) {
    this.now = new Timestamp(BigInt(parts.now.getTime()) * 1_000_000n);
    this.request = new PodRequestInfo(parts);
    this.user = new PodUserView(parts);
    this.pod = new PodView(parts.pod, parts.namespace, parts.isLater);
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Nobody knows it of pods that a controller will create. */
class NotYetKnownError extends Error {
  override readonly name = 'NotYetKnownError';
}

/** Whether a rule has no value for the pods of a workload because of what is known only of the pods themselves. */
export function isNotYetKnown(cause: unknown): boolean {
  return cause instanceof EvaluationError && cause.cause instanceof NotYetKnownError;
}
