/** Reads the hardware of a cluster from SkyPilot's report about it. Source: SkyPilot 0.13 and 1.0.0-dev, `_update_record_with_resources`. */
import type { Hardware } from './contract.ts';

export interface ShownHardware {
  readonly num_nodes?: number | null | undefined;
  readonly cloud?: string | null | undefined;
  readonly region?: string | null | undefined;
  /** As Python writes a dictionary: `{'A100': 8}`; `None`. */
  readonly accelerators?: string | null | undefined;
  /** For people; the only place that tells of spot instances. */
  readonly resources_str_full?: string | null | undefined;
}

/** `undefined` = it cannot be read. */
export function hardwareShown(shown: ShownHardware): Hardware | undefined {
  const { num_nodes: nodes, cloud, region, accelerators: written, resources_str_full: full } = shown;
  const accelerators = acceleratorsShown(written);
  if (accelerators === undefined || nodes === null || nodes === undefined) {
    return undefined;
  }
  return {
    nodes,
    cloud: known(cloud),
    region: known(region),
    instanceType: null,
    accelerators,
    isSpot: /\[spot\]|\bspot\b/i.test(full ?? ''),
    shownType: typeShown(full ?? ''),
  };
}

/** Of `2x[spot](gpus=A100:8, cpus=96, mem=1152, p4d.24xlarge, disk=256)`: what has no name. Images and disks come after it. */
function typeShown(text: string): string | null {
  const [first = ''] = text
    .slice(text.indexOf('(') + 1)
    .split(/,\s*|\)/)
    .filter((part) => part !== '' && !/^(?:gpus|cpus|mem)=/.test(part));
  return /^[^=\s[\]]{1,200}$/.test(first) && first !== '...' && first !== '-' ? first.toLowerCase() : null;
}

function known(text: string | null | undefined): string | null {
  const name = text?.trim().toLowerCase() ?? '';
  return name === '' || name === 'none' ? null : name;
}

function acceleratorsShown(text: string | null | undefined): Hardware['accelerators'] | undefined {
  if (text === 'None') {
    return { name: 'none', count: 0 };
  }
  const [, name, count] =
    /^\{\s*['"]([^'"]{1,200})['"]\s*:\s*(\d{1,9}(?:\.\d{1,9})?)\s*\}$/.exec(text?.trim() ?? '') ?? [];
  return name === undefined ? undefined : { name, count: Number(count) };
}
