/** Whose pod it is, as people name it: the Deployment, not its ReplicaSet. */
import { z } from 'zod';

export interface Owner {
  readonly kind: string;
  readonly name: string;
}

const references = z.looseObject({
  labels: z.record(z.string(), z.string()).nullish(),
  ownerReferences: z
    .array(z.looseObject({ kind: z.string(), name: z.string(), controller: z.boolean().nullish() }))
    .nullish(),
});

/** The label that the Deployment controller gives to the pods of a ReplicaSet, and by which it names that. */
const TEMPLATE_HASH = 'pod-template-hash';

/** The CronJob controller names a Job by the minute for which it was planned. Source: `getJobName` of Kubernetes, since 1.21. */
const PLANNED_JOB = /^(.+)-(\d{8})$/;
const YEAR_2020 = 26_297_280;

/** The controller of an object. `undefined` = it has none. */
export function controllerOf(metadata: unknown): Owner | undefined {
  const { data } = references.safeParse(metadata);
  const found = data?.ownerReferences?.find(({ controller }) => controller === true);
  return found === undefined ? undefined : { kind: found.kind, name: found.name };
}

/** The controller, or its owner where names tell that. `now` as `Date.now()`. */
export function ownerOf(metadata: unknown, now: number): Owner | undefined {
  const controller = controllerOf(metadata);
  if (controller?.kind === 'ReplicaSet') {
    const hash = references.safeParse(metadata).data?.labels?.[TEMPLATE_HASH];
    const end = `-${hash}`;
    return hash !== undefined && controller.name.length > end.length && controller.name.endsWith(end)
      ? { kind: 'Deployment', name: controller.name.slice(0, -end.length) }
      : controller;
  }
  if (controller?.kind === 'Job') {
    const [, name = '', minute] = PLANNED_JOB.exec(controller.name) ?? [];
    return Number(minute) > YEAR_2020 && Number(minute) * 60_000 <= now
      ? { kind: 'CronJob', name }
      : controller;
  }
  return controller;
}
