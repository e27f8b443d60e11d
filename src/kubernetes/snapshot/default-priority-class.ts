import { z } from 'zod';
import type { ApiClient } from '../api/contract.ts';
import { listObjects } from '../api/list.ts';

const priorityClass = z.looseObject({
  metadata: z.looseObject({ name: z.string() }),
  globalDefault: z.boolean().nullish(),
  value: z.number().nullish(),
});

/** The PriorityClass that the API server gives to pods without one: of several, that of the lowest value. */
export async function readDefaultPriorityClass(client: ApiClient): Promise<string | undefined> {
  const { objects } = await listObjects(client, '/apis/scheduling.k8s.io/v1/priorityclasses');
  return objects
    .map((item) => priorityClass.parse(item))
    .filter(({ globalDefault }) => globalDefault === true)
    .sort((a, b) => (a.value ?? 0) - (b.value ?? 0))
    .at(0)?.metadata.name;
}
