/**
 * The `resources` of a task as SkyPilot sends them: every alternative complete, and values in one form.
 * Source: SkyPilot 0.13, loading and writing of resources.
 */
import { isMapping, type Mapping, member } from '../../base/yaml/tree.ts';
import { formatInfra } from '../task/infra.ts';
import { isEmptyList } from '../task/resources.ts';
import {
  acceleratorsAsSent,
  acceleratorTexts,
  autostopAsSent,
  diskSizeAsSent,
  imageAsSent,
  jobRecoveryAsSent,
  localDiskAsSent,
  lowerCase,
  memoryAsSent,
  placeOf,
  portsAsSent,
  pythonNumber,
  tpuArguments,
  tpuCloud,
} from './sent-forms.ts';

/** The flags `--idle-minutes` and `--down`, or their remainder for the options of the request. */
export interface AutostopFlags {
  readonly idleMinutes: number | null;
  readonly down: boolean;
}

interface SentResources {
  readonly resources: unknown;
  /** As SkyPilot copies it into the options of the request. */
  readonly autostop: AutostopFlags;
}

type Group = 'any_of' | 'ordered';

/** Resources of an unknown form stay as written. */
export function resourcesAsSent(resources: unknown, flags: AutostopFlags): SentResources {
  const written = resources ?? {};
  const expanded = isMapping(written) ? alternativesOf(written) : undefined;
  if (expanded === undefined) {
    return { resources, autostop: flags };
  }
  let autostop = flags;
  const sent = expanded.alternatives.map((one) => {
    const single = oneAsSent(one);
    const overridden = autostopWith(single.autostop, autostop);
    autostop = overridden.left;
    return overridden.autostop === undefined ? single : { ...single, autostop: overridden.autostop };
  });
  const [only] = sent;
  return { resources: sent.length === 1 ? only : { [expanded.group]: sent }, autostop };
}

/** SkyPilot reads `gpus` as `accelerators`. */
function withoutAlias(resources: Mapping): Mapping {
  const { gpus, ...others } = resources;
  return gpus === undefined || 'accelerators' in resources ? resources : { ...others, accelerators: gpus };
}

const listOf = (value: unknown): readonly Mapping[] | undefined =>
  Array.isArray(value) && value.length > 0 && value.every(isMapping) ? value : undefined;

/** `undefined` = SkyPilot would refuse the form. */
function alternativesOf(written: Mapping): { group: Group; alternatives: Mapping[] } | undefined {
  const { any_of, ordered, ...base } = withoutAlias(written);
  const lists = [any_of, ordered].filter((list) => list !== undefined && list !== null && !isEmptyList(list));
  const list = listOf(lists[0]);
  if (lists.length > 1 || (lists.length === 1 && list === undefined)) {
    return undefined;
  }
  if (list === undefined) {
    return byAccelerator(base);
  }
  // SkyPilot keeps one set of labels for all alternatives if there are labels outside of them.
  const shared = isMapping(base.labels)
    ? (Object.assign({}, base.labels, ...list.map(({ labels }) => labels)) as Mapping)
    : undefined;
  const parts = list.map((own) =>
    alternativesOf({ ...base, ...withoutAlias(own), labels: shared ?? own.labels ?? null }),
  );
  return parts.some((part) => part === undefined)
    ? undefined
    : {
        group: any_of === lists[0] ? 'any_of' : 'ordered',
        alternatives: parts.flatMap((part) => part?.alternatives ?? []),
      };
}

/** Several accelerators are alternatives: ordered if they are a list, otherwise any. */
function byAccelerator(base: Mapping): { group: Group; alternatives: Mapping[] } {
  const texts = acceleratorTexts(base.accelerators);
  return {
    group: Array.isArray(base.accelerators) ? 'ordered' : 'any_of',
    alternatives:
      texts === undefined
        ? [base]
        : texts.map((text) => ({ ...base, accelerators: acceleratorsAsSent(text) })),
  };
}

/** In the order in which SkyPilot writes them. */
const ORDER = [
  'infra',
  'instance_type',
  'cpus',
  'memory',
  'accelerators',
  'accelerator_args',
  'use_spot',
  'job_recovery',
  'disk_size',
  'image_id',
  'disk_tier',
  'network_tier',
  'local_disk',
  'max_hourly_cost',
  'ports',
  'labels',
  'volumes',
  'autostop',
  'priority',
  'priority_class',
  '_cluster_config_overrides',
];

const FORMS: ReadonlyMap<string, (value: unknown) => unknown> = new Map([
  ['cpus', (cpus) => (typeof cpus === 'number' ? pythonNumber(cpus) : cpus)],
  ['memory', memoryAsSent],
  ['disk_size', diskSizeAsSent],
  ['job_recovery', jobRecoveryAsSent],
  ['disk_tier', lowerCase],
  ['network_tier', lowerCase],
  ['local_disk', localDiskAsSent],
  ['ports', portsAsSent],
  ['autostop', autostopAsSent],
]);

function oneAsSent(written: Mapping): Mapping {
  const { spot_recovery, ...own } = written;
  const { accelerators } = own;
  const infra = placeOf(own);
  const { cloud, region, zone, ...rest } = own;
  const place = infra && { ...infra, cloud: infra.cloud ?? tpuCloud(accelerators) ?? null };
  const text = place && formatInfra(place);
  const values: Mapping = {
    ...(place === undefined ? own : { ...rest, infra: text === '*' ? undefined : text }),
    accelerator_args: tpuArguments(accelerators, own.accelerator_args),
    job_recovery: spot_recovery ?? own.job_recovery,
    ...(place !== undefined && { image_id: imageAsSent(own.image_id, place) }),
  };
  const names = [...ORDER, ...Object.keys(values).filter((name) => !ORDER.includes(name))];
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = member(values, name) ?? undefined;
      const form = FORMS.get(name);
      const sent = value === undefined || form === undefined ? value : form(value);
      return sent === undefined ||
        (name === '_cluster_config_overrides' && isMapping(sent) && Object.keys(sent).length === 0)
        ? []
        : [[name, sent] as const];
    }),
  );
}

/**
 * The flags override the task, but do not turn on what it turns off; the result is copied into the options.
 * SkyPilot passes it on to the next alternative, too.
 */
function autostopWith(autostop: unknown, flags: AutostopFlags): { autostop: unknown; left: AutostopFlags } {
  const { idleMinutes, down } = flags;
  const own = autostop ?? undefined;
  if (own !== undefined && own !== false && !isMapping(own)) {
    return { autostop: own, left: flags };
  }
  if (!down && idleMinutes === null) {
    return { autostop: own, left: own === undefined ? flags : leftOf(own) };
  }
  if (own === false) {
    return { autostop: false, left: { idleMinutes: idleMinutes ?? 0, down } };
  }
  const base = own ?? { idle_minutes: 0, down: false };
  const result = {
    ...base,
    ...(idleMinutes !== null && { idle_minutes: idleMinutes }),
    ...(down && { down }),
  };
  return { autostop: result, left: leftOf(result) };
}

function leftOf(autostop: false | Mapping): AutostopFlags {
  if (autostop === false) {
    return { idleMinutes: 0, down: false };
  }
  const { idle_minutes, down } = autostop;
  return { idleMinutes: typeof idle_minutes === 'number' ? idle_minutes : null, down: down === true };
}
