/** Reads the objects for `scheduling-policy check`: pods, and controllers with a pod template. */

import { InvalidRequestError } from '../../base/errors.ts';
import { YamlDocument } from '../../base/yaml/document.ts';
import { isMapping, type Mapping, type Path, valueAt, YamlError } from '../../base/yaml/tree.ts';
import type { PodRequest } from '../../kubernetes/admission/admission-review.ts';
import type { DecidedAdmission, PodAdmission } from '../../kubernetes/admission/pod-admission.ts';
import { asAdmitted, POD_KINDS, withAdditions } from '../../kubernetes/admission/pod-kinds.ts';
import { asAskedFor, creatorOf, isStored } from '../../kubernetes/cluster/scan/scanned-objects.ts';
import { type PolicySource, serviceAccount } from '../../kubernetes/policies/access.ts';
import type { ClusterOptions } from '../../kubernetes/policies/cluster-settings.ts';
import { type Pod, parsePod, serviceAccountName } from '../../kubernetes/policies/pod.ts';
import { readText, shownName, UsageError } from '../common/output.ts';

/** The limit of the API server, in bytes. */
export const MAX_BYTES = 3 * 1024 * 1024;

export interface CheckedObject {
  readonly kind: string;
  readonly name: string | undefined;
  readonly namespace: string | undefined;
  /** The pod, or the pod template of the object. */
  readonly pod: Pod;
  readonly value: Mapping;
  /** The path of the pod in the object. */
  readonly path: Path;
  /** As written. `undefined` = an item of a list: changing a whole list for each of its pods takes minutes. */
  readonly document: YamlDocument | undefined;
}

/** Reads YAML or JSON documents, including lists. Objects of other kinds, whose pods are not known, are `others`. */
export async function readObjects(file: string): Promise<{ objects: CheckedObject[]; others: string[] }> {
  const text = await readText(file, MAX_BYTES);
  const objects: CheckedObject[] = [];
  const others: string[] = [];
  try {
    for (const document of YamlDocument.parseAll(text)) {
      for (const { name, line } of document.repetitions()) {
        throw new UsageError(`${shownName(file)}:${line}: ${name}: duplicate key`);
      }
      const found = objectsIn(document);
      objects.push(...found.objects);
      others.push(...found.others);
    }
  } catch (thrown) {
    if (thrown instanceof YamlError || thrown instanceof InvalidRequestError) {
      throw new UsageError(`${shownName(file)}: ${thrown.message}`);
    }
    throw thrown;
  }
  if (objects.length === 0) {
    throw new UsageError(
      `${shownName(file)}: expected a pod or an object that creates pods: one of ${Object.keys(POD_KINDS).join(', ')}, List`,
    );
  }
  return { objects, others };
}

/** The objects of one document. @throws InvalidRequestError */
export function objectsIn(document: YamlDocument): { objects: CheckedObject[]; others: string[] } {
  const objects: CheckedObject[] = [];
  const others: string[] = [];
  for (const { value, path } of itemsIn(document.value, [], undefined)) {
    const object = checked(value, path);
    if (object === undefined) {
      others.push(String(value.kind));
    } else {
      objects.push({ ...object, document: path.length === 0 ? document : undefined });
    }
  }
  return { objects, others };
}

interface Item {
  readonly value: Mapping;
  readonly path: Path;
}

/** kubectl prints a List. The API returns lists such as DeploymentList, whose items have no kind. */
function itemsIn(value: unknown, path: Path, kind: string | undefined): Item[] {
  if (!isMapping(value) || typeof (value.kind ?? kind) !== 'string') {
    throw new InvalidRequestError(path.join('.'), 'expected an object with kind');
  }
  const own = String(value.kind ?? kind);
  const ofItems = own === 'List' ? undefined : /^(\w+)List$/.exec(own)?.[1];
  if (own !== 'List' && ofItems === undefined) {
    return [{ value: { ...value, kind: own }, path }];
  }
  if (!Array.isArray(value.items)) {
    throw new InvalidRequestError([...path, 'items'].join('.'), 'expected a list');
  }
  return value.items.flatMap((item: unknown, index) => itemsIn(item, [...path, 'items', index], ofItems));
}

function checked(value: Mapping, at: Path): Omit<CheckedObject, 'document'> | undefined {
  const kind = String(value.kind);
  const path = Object.hasOwn(POD_KINDS, kind) ? POD_KINDS[kind]?.path : undefined;
  if (path === undefined) {
    return undefined;
  }
  const { metadata } = value;
  const text = (field: string) => {
    const written = isMapping(metadata) ? metadata[field] : undefined;
    return typeof written === 'string' && written !== '' ? written : undefined;
  };
  return {
    kind,
    name: text('name') ?? text('generateName'),
    namespace: text('namespace'),
    pod: parsePod(valueAt(value, path), [...at, ...path].join('.')),
    value,
    path,
  };
}

export interface Judges {
  /** `undefined` = no policies, only rules. */
  readonly source: PolicySource | undefined;
  readonly admission: PodAdmission;
  /** What the API server fills in. */
  readonly settings: ClusterOptions;
}

export interface ReviewedObject {
  readonly decided: DecidedAdmission;
  readonly policies: readonly string[];
  /** The pod as written, with the additions of policies. */
  readonly written: Pod;
}

interface ReviewAs {
  /** The name of its service account. Default: that of the pod. */
  readonly account?: string | undefined;
  /** The sender, for rules. Default: unknown, for example for pods that a controller will create. */
  readonly user?: { readonly name: string; readonly groups: readonly string[] } | undefined;
  /** Skip rules that need who sends it, or its name, also for pods. Default: only for pods of a controller. */
  readonly isSenderUnknown?: boolean;
  /** The existing pod, for an update. Default: a new pod. */
  readonly current?: Pod | undefined;
}

/** Reviews the pod of an object, or the pods that it creates. A pod that a cluster has stored is reviewed as it was asked for. */
export async function reviewObject(
  { source, admission, settings }: Judges,
  object: CheckedObject,
  namespace: string,
  { account = serviceAccountName(object.pod), user, isSenderUnknown, current }: ReviewAs = {},
): Promise<ReviewedObject> {
  const isTemplate = object.kind === 'DaemonSet';
  const completed = ({ spec, ...rest }: Pod) =>
    asAdmitted({ ...rest, spec: { ...spec, serviceAccountName: account } }, isTemplate, settings);
  const isRunning = object.kind === 'Pod' && current === undefined && isStored(object.pod);
  const pod = completed(isRunning ? asAskedFor(object.pod) : object.pod);
  const creator = isRunning ? creatorOf(object.pod) : { username: undefined, groups: [] };
  const request: PodRequest = {
    kind: isTemplate ? 'template' : 'pod',
    uid: '',
    name: object.name,
    namespace,
    pod,
    current: current && completed(current),
    isUpdate: current !== undefined,
    dryRun: true,
    username: user?.name ?? creator.username,
    groups: user?.groups ?? creator.groups,
  };
  const isLater = isSenderUnknown === true || (!isTemplate && object.kind !== 'Pod' && user === undefined);
  const options = { addDefaults: true, workload: isLater ? object.kind : undefined };
  const policies = await source?.policiesOf(serviceAccount(namespace, account));
  const decided =
    policies === undefined
      ? await admission.admit(request, options)
      : admission.review(request, policies, options);
  const written = withAdditions(object.pod, pod, decided.pod ?? pod);
  return { decided, policies: policies?.names ?? [], written };
}
