/** Pods as rules see them. What is missing in a pod is missing for a rule. */
import { isMapping, type Mapping } from '../../base/yaml/tree.ts';
import { EvaluationError } from '../cel/frame.ts';
import { JsonMap, Timestamp } from '../cel/values.ts';

export interface PodRequestParts {
  readonly operation: 'create' | 'update';
  /** `Pod`, or a workload: `DaemonSet`, `Deployment`, … */
  readonly kind: string;
  /** As it would be stored, with defaults. */
  readonly pod: object;
  readonly namespace: string;
  /** `undefined` = the API server does not send it. */
  readonly username: string | undefined;
  readonly groups: readonly string[];
  readonly now: Date;
  /** The pod will be created by a controller: its user and its name are unknown. Default: no. */
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

/**
 * Whole and partial GPUs: `nvidia.com/gpu`, `amd.com/gpu`, `nvidia.com/mig-1g.5gb`, `gpu.intel.com/i915`,
 * `deviceclass.resource.kubernetes.io/mig.nvidia.com`.
 */
const GPU = /gpu|\/mig[-.]/i;
/**
 * How much of the GPUs that a container requests beside it: `nvidia.com/gpumem`, `volcano.sh/vgpu-cores`,
 * `gpu.intel.com/millicores`. It is in megabytes or percent, so it is no number of GPUs.
 */
const SHARE =
  /\/(?:v?gpu-?(?:mem(?:ory)?|cores?)(?:[-.](?:percentage|ratio))?|millicores|memory\.max|tiles)$/i;

export class PodView {
  readonly namespace: string;
  readonly #metadata: Mapping;
  readonly #spec: Mapping;
  readonly #isLater: boolean;
  #requests: Amounts | undefined;
  #gpus: Amounts | undefined;
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
    this.#requests ??= podRequests(this.#spec, amountsOf);
    return this.#requests;
  }

  get gpus(): Amounts {
    this.#gpus ??= podRequests(this.#spec, gpusOf);
    return this.#gpus;
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

function domainOf(resource: string): string {
  return resource.slice(0, resource.indexOf('/'));
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Unknown for pods that a controller will create. */
class NotYetKnownError extends Error {
  override readonly name = 'NotYetKnownError';
}

/** Whether a rule has no value for a workload because it needs facts that are known only of its pods. */
export function isNotYetKnown(cause: unknown): boolean {
  return cause instanceof EvaluationError && cause.cause instanceof NotYetKnownError;
}

type Amounts = ReadonlyMap<string, number>;

/** By resource: requests, or limits without a request, as the API server completes them. */
function amountsOf(resources: unknown): Amounts {
  const { requests, limits } = mappingOf(resources);
  return new Map(
    Object.entries({ ...mappingOf(limits), ...mappingOf(requests) }).map(([name, value]) => [
      name,
      quantityOf(value),
    ]),
  );
}

/**
 * Of one container: Volcano gives another GPU to each one that requests memory of GPUs without a number. A share
 * alone counts as it is: how many GPUs it needs is not known.
 */
function gpusOf(resources: unknown): Amounts {
  const gpus = [...amountsOf(resources)].filter(([name, amount]) => GPU.test(name) && amount > 0);
  const counted = new Set(gpus.flatMap(([name]) => (SHARE.test(name) ? [] : [domainOf(name)])));
  return new Map(gpus.filter(([name]) => !SHARE.test(name) || !counted.has(domainOf(name))));
}

/**
 * The sum of all containers, or the largest init container with the sidecars beside it, plus the overhead. At
 * least the requests of the pod as a whole. `of`: what counts of one of them.
 */
function podRequests(spec: Mapping, of: (resources: unknown) => Amounts): Amounts {
  const beside = new Map<string, number>();
  const before = new Map<string, number>();
  for (const container of listOf(spec.initContainers).map(mappingOf)) {
    const own = of(container.resources);
    if (container.restartPolicy === 'Always') {
      add(beside, own);
    } else {
      for (const [name, amount] of own) {
        before.set(name, Math.max(before.get(name) ?? 0, amount + (beside.get(name) ?? 0)));
      }
    }
  }
  const total = new Map(beside);
  for (const container of listOf(spec.containers).map(mappingOf)) {
    add(total, of(container.resources));
  }
  for (const [name, amount] of before) {
    total.set(name, Math.max(total.get(name) ?? 0, amount));
  }
  const { requests, limits } = mappingOf(spec.resources);
  for (const [name, amount] of of({ requests })) {
    total.set(name, Math.max(total.get(name) ?? 0, amount));
  }
  // As the API server completes them: a limit of the pod counts if no container requests anything.
  for (const [name, amount] of of({ limits })) {
    total.set(name, total.get(name) ?? amount);
  }
  add(total, of({ requests: spec.overhead }));
  return total;
}

function add(total: Map<string, number>, more: Amounts): void {
  for (const [name, amount] of more) {
    total.set(name, (total.get(name) ?? 0) + amount);
  }
}

function mappingOf(value: unknown): Mapping {
  if (value === undefined || value === null) {
    return {};
  }
  if (!isMapping(value)) {
    throw new Error('the pod has a list or a text where a mapping is expected');
  }
  return value;
}

function listOf(value: unknown): readonly unknown[] {
  if (value === undefined || value === null) {
    return [];
  }
  if (!Array.isArray(value)) {
    throw new Error('the pod has something else where a list is expected');
  }
  return value;
}

/** Quantities of Kubernetes, such as `500m`, `16Gi` and `1e3`. Source: Kubernetes API, resource.Quantity. */
const QUANTITY =
  /^([+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30}))(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d{1,3}))?$/;

const DECIMAL = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E'];
const BINARY = ['Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];

/** @throws Error if it is not a quantity */
function quantityOf(value: unknown): number {
  const text = typeof value === 'number' ? String(value) : value;
  const [, number, unit = '', exponent] = (typeof text === 'string' && QUANTITY.exec(text)) || [];
  const amount = Number(number) * (exponent === undefined ? factorOf(unit) : 10 ** Number(exponent));
  if (!Number.isFinite(amount)) {
    throw new Error('expected a quantity such as 500m or 16Gi');
  }
  return amount;
}

function factorOf(unit: string): number {
  return unit.endsWith('i') ? 1024 ** (BINARY.indexOf(unit) + 1) : 1000 ** (DECIMAL.indexOf(unit) - 3);
}
