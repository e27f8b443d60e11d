/** What a pod asks for in all. Source: Kubernetes docs, "Resource sharing within containers" of init containers, "Pod Overhead". */
import { isMapping, type Mapping } from '../../yaml/tree.ts';
import { quantityOf } from './quantity.ts';

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
