/** What a pod asks for in all. Source: Kubernetes docs, "Resource sharing within containers" of init containers, "Pod Overhead". */
import { isMapping, type Mapping } from '../../base/yaml/tree.ts';

export type Amounts = ReadonlyMap<string, number>;

/** By resource: requests, or limits where there is no request, as the API server completes them. */
export function amountsOf(resources: unknown): Amounts {
  const { requests, limits } = mappingOf(resources);
  return new Map(
    Object.entries({ ...mappingOf(limits), ...mappingOf(requests) }).map(([name, value]) => [
      name,
      quantityOf(value),
    ]),
  );
}

/**
 * All containers together, or the largest of those that run before, with what runs beside them; and the overhead. What the pod as a whole
 * asks for takes the place of its containers' sum.
 */
export function podRequests(spec: Mapping): Amounts {
  const beside = new Map<string, number>();
  const before = new Map<string, number>();
  for (const container of listOf(spec.initContainers).map(mappingOf)) {
    const own = amountsOf(container.resources);
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
    add(total, amountsOf(container.resources));
  }
  for (const [name, amount] of before) {
    total.set(name, Math.max(total.get(name) ?? 0, amount));
  }
  for (const [name, amount] of amountsOf(spec.resources)) {
    total.set(name, Math.max(total.get(name) ?? 0, amount));
  }
  add(
    total,
    new Map(Object.entries(mappingOf(spec.overhead)).map(([name, value]) => [name, quantityOf(value)])),
  );
  return total;
}

function add(total: Map<string, number>, more: Amounts): void {
  for (const [name, amount] of more) {
    total.set(name, (total.get(name) ?? 0) + amount);
  }
}

export function mappingOf(value: unknown): Mapping {
  if (value === undefined || value === null) {
    return {};
  }
  if (!isMapping(value)) {
    throw new Error('the pod has a list or a text where a mapping is expected');
  }
  return value;
}

export function listOf(value: unknown): readonly unknown[] {
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

/** @throws Error if it is no quantity */
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
