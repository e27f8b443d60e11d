/** A pod, as far as scheduling policies look at it. Everything else of it passes through. Source: Kubernetes API, core/v1. */
import { z } from 'zod';
import { InvalidRequestError } from '../errors.ts';
import { firstMistake } from '../lease/first-mistake.ts';

/** Of terms, expressions and tolerations. The API server takes some thousand of them in all: its database holds no larger pod. */
const MAX_ITEMS = 1000;
/** As many as a cluster may have nodes, and more. */
const MAX_LISTED = 10_000;

/** zod judges the length first. */
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

/** Of other pods: only whether it is there, and the same, matters. */
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

export const podSchema = z.looseObject({
  metadata: z
    .looseObject({
      name: z.string().nullish(),
      generateName: z.string().nullish(),
      namespace: z.string().nullish(),
      annotations: z.record(z.string(), z.string()).nullish(),
    })
    .nullish(),
  spec: z.looseObject({
    serviceAccountName: z.string().nullish(),
    serviceAccount: z.string().nullish(),
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

/** Checks a pod and returns it as it came, not copied. Throws `InvalidRequestError` that names the first wrong field below `at`. */
export function parsePod(input: unknown, at = ''): Pod {
  const mistake = firstMistake(compiled, input);
  if (mistake === undefined) {
    return input as Pod;
  }
  throw invalidRequest(mistake, at);
}

/** In the words of the other protocols. */
const KINDS: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
};

/** What zod has against a request; its path begins below `at`. */
export function invalidRequest(issue: z.core.$ZodIssue, at = ''): InvalidRequestError {
  const field = [at, ...issue.path].filter((step) => step !== '').join('.');
  const expected = issue.code === 'invalid_type' ? KINDS[issue.expected] : undefined;
  return new InvalidRequestError(field, expected === undefined ? issue.message : `expected ${expected}`);
}

/** The name under which the pod runs in its namespace: `default` where it names none. */
export function serviceAccountName({ spec }: Pod): string {
  return spec.serviceAccountName || spec.serviceAccount || 'default';
}
