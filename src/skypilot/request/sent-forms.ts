/**
 * The forms in which SkyPilot sends single values of `resources`. A form that it would refuse stays as
 * written: the validation or the policy reports it. Source: SkyPilot 0.13, loading and writing of resources.
 */
import { isMapping, type Mapping } from '../../base/yaml/tree.ts';
import { PolicyRejected } from '../admin-policy.ts';
import { type Infra, writtenInfra } from '../task/infra.ts';

/** TPUs of GKE; all others belong to GCP. */
const GKE_TPUS: ReadonlySet<string> = new Set([
  'tpu-v4-podslice',
  'tpu-v5-lite-device',
  'tpu-v5-lite-podslice',
  'tpu-v5p-slice',
  'tpu-v6e-slice',
]);

const MINUTES: Readonly<Record<string, number>> = { m: 1, h: 60, d: 24 * 60, w: 7 * 24 * 60 };

/** In bytes, without the `b` or `i` at the end. */
const MEMORY_UNITS: Readonly<Record<string, number>> = {
  k: 2 ** 10,
  m: 2 ** 20,
  g: 2 ** 30,
  t: 2 ** 40,
  p: 2 ** 50,
};
const DEFAULT_DISK_GB = 256;

/** A number as Python writes it. `isFloat`: it was written with a point or an exponent. */
export function pythonNumber(value: number | bigint, isFloat = false): string {
  if (typeof value === 'bigint' || !isFloat || !Number.isFinite(value)) {
    return String(value);
  }
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e16 || size < 1e-4)) {
    return value.toExponential().replace(/e([+-])(\d)$/, 'e$10$2');
  }
  return Number.isInteger(value) ? `${value}.0` : String(value);
}

/** `undefined` = SkyPilot would refuse it. */
export function placeOf(resources: Mapping): Infra | undefined {
  try {
    return writtenInfra(resources);
  } catch (thrown) {
    if (thrown instanceof PolicyRejected) {
      return undefined;
    }
    throw thrown;
  }
}

/** The cloud that TPUs belong to, if `accelerators` (in the form that is sent) are TPUs. */
export function tpuCloud(accelerators: unknown): string | undefined {
  const [name] = isMapping(accelerators) ? Object.keys(accelerators) : [];
  return name === undefined || !/tpu/i.test(name) ? undefined : GKE_TPUS.has(name) ? 'kubernetes' : 'gcp';
}

/** TPUs of GCP need a software version. */
export function tpuArguments(accelerators: unknown, given: unknown): unknown {
  const [name = ''] = isMapping(accelerators) ? Object.keys(accelerators) : [];
  const own = given ?? {};
  if (tpuCloud(accelerators) !== 'gcp' || !isMapping(own) || 'runtime_version' in own) {
    return tpuCloud(accelerators) === undefined ? given : own;
  }
  const ofGeneration = name.startsWith('tpu-v5')
    ? 'v2-alpha-tpuv5'
    : name.startsWith('tpu-v6e')
      ? 'v2-alpha-tpuv6e'
      : 'tpu-vm-base';
  return { ...own, runtime_version: own.tpu_vm === false ? '2.12.0' : ofGeneration };
}

/** Each accelerator as a text; `undefined` = another form. */
export function acceleratorTexts(accelerators: unknown): string[] | undefined {
  if (typeof accelerators === 'string') {
    return [accelerators];
  }
  const texts = Array.isArray(accelerators)
    ? accelerators
    : isMapping(accelerators)
      ? Object.entries(accelerators).map(([name, count]) =>
          count === null
            ? name
            : typeof count === 'number' || typeof count === 'string'
              ? `${name}:${count}`
              : null,
        )
      : [];
  return texts.length > 0 && texts.every((text) => typeof text === 'string')
    ? [...new Set(texts)]
    : undefined;
}

const BY_MEMORY = /(?:^|:)\d+[gmt]b\+?(?::|$)/i;

/** `A100:8` as `{A100: 8}`. Accelerators named by memory need SkyPilot's catalog, and stay as written. */
export function acceleratorsAsSent(text: string): unknown {
  const [name = '', count = '1', ...further] = text.split(':');
  const number = Number(count);
  return BY_MEMORY.test(text) || further.length > 0 || count.trim() === '' || !(number > 0)
    ? text
    : { [name]: number };
}

/** A duration such as `90`, `1.5h` or `2d` in minutes; `undefined` = not a duration. */
function minutesOf(text: string): number | undefined {
  if (/^\d+$/.test(text)) {
    return Number(text);
  }
  const unit = MINUTES[text.slice(-1).toLowerCase()];
  const amount = text.slice(0, -1).trim();
  const minutes = unit === undefined || amount === '' ? Number.NaN : Math.ceil(Number(amount) * unit);
  return minutes >= 0 && Number.isFinite(minutes) ? minutes : undefined;
}

/** `false`, or `{idle_minutes, down}`. */
export function autostopAsSent(autostop: unknown): unknown {
  switch (typeof autostop) {
    case 'boolean':
      return autostop && { idle_minutes: 0, down: false };
    case 'number':
      return Number.isInteger(autostop) ? { idle_minutes: autostop, down: false } : autostop;
    case 'string': {
      const idle_minutes = minutesOf(autostop);
      return idle_minutes === undefined ? autostop : { idle_minutes, down: false };
    }
  }
  if (!isMapping(autostop)) {
    return autostop;
  }
  // Hooks move to the `config` of the task.
  const { hook: _, hook_timeout: __, ...own } = autostop;
  return { idle_minutes: 0, down: false, ...own };
}

/** `16GB+` as `16.0+`. */
export function memoryAsSent(memory: unknown): unknown {
  const text = typeof memory === 'number' ? String(memory) : memory;
  const [, amount = '', unit, more = ''] =
    (typeof text === 'string' && /^\s*([\d.]+)\s*(?:([kmgtp])[bi])?([+x]?)$/i.exec(text)) || [];
  if (unit === undefined || !Number.isFinite(Number(amount))) {
    return text;
  }
  const size = (Number(amount) * (MEMORY_UNITS[unit.toLowerCase()] ?? Number.NaN)) / 2 ** 30;
  return `${pythonNumber(size, true)}${more}`;
}

/** In GB. The default is not sent. */
export function diskSizeAsSent(size: unknown): unknown {
  const [, amount = '', unit] = /^(\d+)(?:([kmgtp])[bi])?$/i.exec(String(size)) ?? [];
  const gb = (Number(amount) * (MEMORY_UNITS[(unit ?? 'g').toLowerCase()] ?? Number.NaN)) / 2 ** 30;
  if (amount === '' || !Number.isSafeInteger(gb)) {
    return size;
  }
  return gb === DEFAULT_DISK_GB ? undefined : gb;
}

/** `{strategy: …}` in upper case. */
export function jobRecoveryAsSent(recovery: unknown): unknown {
  const mapping = typeof recovery === 'string' ? { strategy: recovery } : recovery;
  if (!isMapping(mapping)) {
    return recovery;
  }
  const { strategy = null } = mapping;
  return strategy === 'none'
    ? undefined
    : { ...mapping, strategy: typeof strategy === 'string' ? strategy.toUpperCase() : strategy };
}

/** By region; `null` means no region. Kubernetes runs only container images. */
export function imageAsSent(image: unknown, { cloud, region }: Infra): unknown {
  if (typeof image !== 'string' && !isMapping(image)) {
    return image;
  }
  const { docker, ...byRegion } = typeof image === 'string' ? { null: image, docker: undefined } : image;
  const { null: anywhere, ...named } = byRegion;
  const images = anywhere === undefined ? named : { [region ?? 'null']: anywhere };
  if (![docker ?? '', ...Object.values(images)].every((one) => typeof one === 'string')) {
    return image;
  }
  const prefix = (text: string) =>
    cloud === 'kubernetes' && !text.startsWith('docker:') ? `docker:${text}` : text;
  return {
    ...Object.fromEntries(
      Object.entries(images).map(([name, one]) => [name.trim(), prefix(String(one).trim())]),
    ),
    ...(docker !== undefined && {
      docker: String(docker)
        .trim()
        .replace(/^docker:/, ''),
    }),
  };
}

/** A list of texts, in order and without overlaps: `['22', '8000-8010']`. */
export function portsAsSent(ports: unknown): unknown {
  const texts = (Array.isArray(ports) ? ports : [ports])
    .flatMap((port) => String(port).split(','))
    .map((text) => text.trim())
    .filter((text) => text !== '');
  const ranges = texts.map((text) => /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text));
  if (ranges.some((range) => range === null)) {
    return ports;
  }
  const sorted = ranges
    .map((range) => [Number(range?.[1]), Number(range?.[2] ?? range?.[1])] as const)
    .sort(([a], [b]) => a - b);
  const merged: [number, number][] = [];
  for (const [from, to] of sorted) {
    const last = merged.at(-1);
    if (last !== undefined && from <= last[1] + 1) {
      last[1] = Math.max(last[1], to);
    } else {
      merged.push([from, to]);
    }
  }
  return merged.length === 0
    ? undefined
    : merged.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`));
}

/** `nvme:100+` */
export function localDiskAsSent(disk: unknown): unknown {
  const [, mode, size] = /^(?:(nvme|ssd)(?::|$))?([\d.]+\+?)?$/.exec(String(disk).toLowerCase().trim()) ?? [];
  return mode === undefined && size === undefined ? disk : `${mode ?? 'nvme'}:${size ?? '100+'}`;
}

export function lowerCase(value: unknown): unknown {
  return typeof value === 'string' ? value.toLowerCase() : value;
}
