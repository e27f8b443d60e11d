/** Runs one case about pods, with scheduling policies from files and rules. */
import { dirname, resolve } from 'node:path';
import { InvalidRequestError } from '../../base/errors.ts';
import { YamlDocument } from '../../base/yaml/document.ts';
import { YamlError } from '../../base/yaml/tree.ts';
import { readTextFile, systemErrorText } from '../../config/read-file.ts';
import { type Configuration, sectionOf } from '../../enforcement/configuration.ts';
import { rulesOfFailure } from '../../filter/verdict.ts';
import { PodAdmission } from '../../kubernetes/admission/pod-admission.ts';
import { PodRules } from '../../kubernetes/admission/pod-rules.ts';
import { type KubernetesOptions, kubernetesSection, policyOptions } from '../../kubernetes/options.ts';
import { type Pod, parsePod } from '../../kubernetes/policies/pod.ts';
import { SchedulingPolicies } from '../../kubernetes/policies/scheduling-policies.ts';
import { CaseMistake, type ReadCase } from '../cases/case-files.ts';
import type { CaseResult } from '../cases/case-report.ts';
import { differences, missing, pathDifferences } from '../cases/expected.ts';
import {
  type CheckedObject,
  MAX_BYTES,
  objectsIn,
  type ReviewedObject,
  reviewObject,
} from '../scheduling-policy/objects.ts';
import type { PodCase, PodExpectation } from './any-case.ts';
import type { Coverage } from './coverage.ts';

/** @throws CaseMistake, ConfigurationError */
export async function runPodCase(
  read: ReadCase<PodCase>,
  configuration: Configuration,
  coverage: Coverage,
): Promise<Pick<CaseResult, 'status' | 'reasons'>> {
  const objects = objectsOf(read);
  const options = sectionOf(configuration, kubernetesSection);
  const settings = policyOptions(options);
  const paths = pathsOf(read, options);
  const source = paths.length === 0 ? undefined : SchedulingPolicies.read(paths, settings).policies;
  const { audit, schedulers, rules_path } = options;
  const seen = coverage.of(configuration);
  const { now: time, user } = read.case;
  const now = () => (time === undefined ? new Date() : new Date(time));
  const rules = rules_path === undefined ? undefined : PodRules.read(rules_path, { now, observer: seen });
  const admission = new PodAdmission(source, { audit, schedulers, rules });
  for (const { name } of source?.policies ?? []) {
    seen.expect('scheduling-policy', name);
  }
  const reasons: string[] = [];
  for (const object of objects) {
    const namespace = namespaceOf(read, object);
    const reviewed = await reviewObject({ source, admission, settings }, object, namespace, {
      account: read.case.service_account,
      current: currentOf(read),
      user,
    }).catch((thrown: unknown) => {
      if (rulesOfFailure(thrown) === undefined || !(thrown instanceof Error)) {
        throw thrown;
      }
      return thrown;
    });
    if (reviewed instanceof Error) {
      return { status: 'broken', reasons: [reviewed.message] };
    }
    for (const name of reviewed.policies) {
      const refuses = reviewed.decided.reasons.some(({ policies }) => policies.includes(name));
      seen.saw(
        'scheduling-policy',
        name,
        reviewed.decided.allowed ? 'allowed' : refuses ? 'refused' : 'skipped',
      );
    }
    const heading = objects.length === 1 ? '' : `${object.kind} ${object.name ?? ''}: `;
    reasons.push(...podDifferences(read.case.expect, reviewed, object).map((reason) => heading + reason));
  }
  return { status: reasons.length === 0 ? 'passed' : 'failed', reasons };
}

function pathsOf(
  read: ReadCase<PodCase>,
  { source, scheduling_policies: configured, rules_path }: KubernetesOptions,
): readonly string[] {
  const { scheduling_policies: own } = read.case;
  if (own !== undefined) {
    return own.map((path) => resolve(dirname(read.file), path));
  }
  if (configured.length === 0 && rules_path === undefined) {
    const why =
      source === 'cluster' ? 'are those of a cluster, which a case cannot ask' : 'are not configured';
    throw CaseMistake.at(
      read,
      [],
      `the scheduling policies ${why}: name files in scheduling_policies of the case, or of [kubernetes]`,
    );
  }
  return configured;
}

function currentOf({ case: { current }, ...read }: ReadCase<PodCase>): Pod | undefined {
  try {
    return current === undefined ? undefined : parsePod(current);
  } catch (thrown) {
    throw thrown instanceof InvalidRequestError
      ? CaseMistake.at(read, ['current'], `current: ${thrown.message}`)
      : thrown;
  }
}

function objectsOf(read: ReadCase<PodCase>): CheckedObject[] {
  const { pod, pod_file } = read.case;
  const key = pod_file === undefined ? 'pod' : 'pod_file';
  try {
    const documents =
      pod_file === undefined
        ? [YamlDocument.from({ apiVersion: 'v1', kind: 'Pod', ...pod })]
        : YamlDocument.parseAll(readTextFile(resolve(dirname(read.file), pod_file), MAX_BYTES));
    const found = documents.map(objectsIn);
    const [other] = found.flatMap(({ others }) => others);
    if (other !== undefined) {
      throw CaseMistake.at(
        read,
        [key, 'kind'],
        `${key}: ${other} is no pod, and no kind whose pods are known`,
      );
    }
    const objects = found.flatMap((one) => one.objects);
    if (objects.length === 0) {
      throw CaseMistake.at(read, [key], `${key}: expected a pod, or an object that creates pods`);
    }
    return objects;
  } catch (thrown) {
    if (thrown instanceof CaseMistake) {
      throw thrown;
    }
    const isContent = thrown instanceof YamlError || thrown instanceof InvalidRequestError;
    throw CaseMistake.at(read, [key], `${key}: ${isContent ? thrown.message : systemErrorText(thrown)}`);
  }
}

function namespaceOf(read: ReadCase<PodCase>, { namespace: own }: CheckedObject): string {
  const { namespace } = read.case;
  if (namespace !== undefined && own !== undefined && namespace !== own) {
    throw CaseMistake.at(read, ['namespace'], `namespace: expected ${own}, where the pod is`);
  }
  return namespace ?? own ?? 'default';
}

function podDifferences(
  expected: PodExpectation,
  { decided, written }: ReviewedObject,
  { pod }: CheckedObject,
): string[] {
  const { policy, field, pod_paths } = expected;
  const { message, reasons } = decided;
  const rules = (decided.rules ?? []).flatMap(({ rule, audit }) => (audit ? [] : [rule]));
  const policies = reasons.flatMap((one) => one.policies);
  // A field that no policy mentions is not refused by a single policy.
  const by = [...new Set([...policies, ...rules])].join(', ') || null;
  const silent = missing(policy, policies).join(', ');
  const fields = reasons.map((one) => one.field);
  return differences(
    expected,
    { ...decided, by, rules, changed: written !== pod, changedBy: ['policies'] },
    [policy, field],
    [
      silent !== '' &&
        `expected the policy ${silent} to reject it, but it was ${by ?? 'rejected'}: ${message}`,
      field !== undefined &&
        !fields.some((one) => one === field || one.startsWith(`${field}[`) || one.startsWith(`${field} `)) &&
        `expected ${field} to be rejected, but it was ${fields.join(', ')}: ${message}`,
      ...pathDifferences('pod', pod_paths, [written]),
    ],
  );
}
