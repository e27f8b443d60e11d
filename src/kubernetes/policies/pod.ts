/** The parts of a pod that scheduling policies check. All else passes through. Source: Kubernetes API, core/v1. */
import { z } from 'zod';
import { InvalidRequestError } from '../../base/errors.ts';
import { firstMistake } from '../../lease/request-schemas.ts';

/** Limit for terms, expressions and tolerations. etcd cannot store a pod with more than a few thousand of them. */
const MAX_ITEMS = 1000;
/** More than a cluster has nodes. */
const MAX_LISTED = 10_000;

/** zod checks the length first. */
function list<Item extends z.ZodType>(item: Item, most = MAX_ITEMS) {
  return z.array(item).max(most, `expected a list of at most ${most}`);
}

const expression = z.looseObject({
  key: z.string(),
  operator: z.string(),
  values: list(z.string(), MAX_LISTED).nullish(),
});

const nodeSelectorTerm = z.looseObject({
  matchExpressions: list(expression).nullish(),
  matchFields: list(expression).nullish(),
});

/** Terms about other pods are only compared as a whole. */
const podTerms = list(z.looseObject({})).nullish();

const podTimes = z.looseObject({
  requiredDuringSchedulingIgnoredDuringExecution: podTerms,
  preferredDuringSchedulingIgnoredDuringExecution: podTerms,
});

const affinity = z.looseObject({
  nodeAffinity: z
    .looseObject({
      requiredDuringSchedulingIgnoredDuringExecution: z
        .looseObject({ nodeSelectorTerms: list(nodeSelectorTerm).nullish() })
        .nullish(),
      preferredDuringSchedulingIgnoredDuringExecution: list(
        z.looseObject({ weight: z.number().nullish(), preference: nodeSelectorTerm }),
      ).nullish(),
    })
    .nullish(),
  podAffinity: podTimes.nullish(),
  podAntiAffinity: podTimes.nullish(),
});

const toleration = z.looseObject({
  key: z.string().nullish(),
  operator: z.string().nullish(),
  value: z.string().nullish(),
  effect: z.string().nullish(),
  tolerationSeconds: z.number().nullish(),
});

/**
 * Limited, since rights are cached by it: mutating webhooks are called before the API server checks a
 * template.
 */
const accountName = z.string().max(253, 'expected at most 253 characters').nullish();

const podSchema = z.looseObject({
  metadata: z
    .looseObject({
      name: z.string().nullish(),
      generateName: z.string().nullish(),
      namespace: z.string().nullish(),
      annotations: z.record(z.string(), z.string()).nullish(),
    })
    .nullish(),
  spec: z.looseObject({
    serviceAccountName: accountName,
    serviceAccount: accountName,
    schedulerName: z.string().nullish(),
    nodeName: z.string().nullish(),
    priorityClassName: z.string().nullish(),
    priority: z.number().nullish(),
    preemptionPolicy: z.string().nullish(),
    nodeSelector: z.record(z.string(), z.string()).nullish(),
    tolerations: list(toleration).nullish(),
    affinity: affinity.nullish(),
    topologySpreadConstraints: z.array(z.looseObject({ whenUnsatisfiable: z.string().nullish() })).nullish(),
  }),
});

export type Pod = z.infer<typeof podSchema>;
export type Toleration = z.infer<typeof toleration>;
export type Affinity = z.infer<typeof affinity>;
export type NodeSelectorTerm = z.infer<typeof nodeSelectorTerm>;
export type Expression = z.infer<typeof expression>;

const compiled = z.compile(podSchema);

/**
 * Validates a pod and returns the original, not a copy.
 *
 * @throws InvalidRequestError naming the first invalid field below `at`
 */
export function parsePod(input: unknown, at = ''): Pod {
  const mistake = firstMistake(compiled, input);
  if (mistake === undefined) {
    return input as Pod;
  }
  throw invalidRequest(mistake, at);
}

/** The wording of the other protocols. */
const KINDS: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
};

/** Converts a zod issue; its path is relative to `at`. */
export function invalidRequest(issue: z.core.$ZodIssue, at = ''): InvalidRequestError {
  const field = [at, ...issue.path].filter((step) => step !== '').join('.');
  const expected = issue.code === 'invalid_type' ? KINDS[issue.expected] : undefined;
  return new InvalidRequestError(field, expected === undefined ? issue.message : `expected ${expected}`);
}

/** The service account of the pod; `default` if it has none. */
export function serviceAccountName({ spec }: Pod): string {
  return spec.serviceAccountName || spec.serviceAccount || 'default';
}
