/**
 * Reads clusters from SkyPilot's API server: their uptimes, hardware and owners. Source: SkyPilot 0.13 and
 * 1.0.0-dev, its server's `/cost_report`, which also lists ended clusters, and `/status`.
 */

import { z } from 'zod';
import type { Call } from '../../filter/verdict.ts';
import { addTo } from '../../ledger/add-to.ts';
import { answerOf, type SkypilotApiServer } from '../api-server.ts';
import type { Hardware, LaunchOwner } from './contract.ts';

/** A time in which a cluster was up, in microseconds of the epoch. */
export interface ObservedRun {
  readonly from: bigint;
  /** `undefined` = it is still up. */
  readonly until: bigint | undefined;
  /** `undefined` = unknown to SkyPilot. */
  readonly hardware: Hardware | undefined;
  /** Who launched the cluster first: SkyPilot keeps this until the cluster is torn down. */
  readonly owner: LaunchOwner;
}

/** A cluster as SkyPilot shows it, with all earlier clusters of this name. */
export interface ObservedCluster {
  readonly name: string;
  /** Of the latest cluster. */
  readonly owner: LaunchOwner;
  /** In chronological order. */
  readonly runs: readonly ObservedRun[];
  /** In minutes; negative = off; `undefined` = unknown to SkyPilot. */
  readonly autostop: number | undefined;
  /** Whether SkyPilot has it, up or stopped. */
  readonly exists: boolean;
}

export interface Observation {
  /** By `workspace/name`. */
  readonly clusters: ReadonlyMap<string, ObservedCluster>;
  /** The number of unreadable records. If there are any, no cluster counts as ended. */
  readonly unreadable: number;
}

const seconds = z.number().min(0).max(1e11);
const text = z.string().max(10_000);
const reportSchema = z.object({
  name: text.min(1),
  launched_at: seconds.nullish(),
  num_nodes: z.int().min(0).max(1_000_000).nullish(),
  usage_intervals: z
    .array(z.tuple([seconds, seconds.nullable()]))
    .max(100_000)
    .nullish(),
  status: text.nullish(),
  workspace: text.nullish(),
  user_hash: text.nullish(),
  user_name: text.nullish(),
  cloud: text.nullish(),
  region: text.nullish(),
  accelerators: text.nullish(),
  resources_str_full: text.nullish(),
});
const statusSchema = z.object({ name: text, workspace: text.nullish(), autostop: z.number().nullish() });
const listSchema = z.array(z.unknown()).max(1_000_000);

type Report = z.infer<typeof reportSchema>;

/** All existing clusters, and those of the last day. @throws Error if they are unknown */
export async function observe(server: SkypilotApiServer, call: Call): Promise<Observation> {
  const reports = answerOf(listSchema, await server.ask('/cost_report', { days: 1 }, call));
  const body = { refresh: 'NONE', all_users: true, include_credentials: false, include_handle: false };
  const states = answerOf(listSchema, await server.ask('/status', body, call));
  return observed(reports, states);
}

/** Clusters of these names, of any time. @throws Error if they are unknown */
export async function observeNamed(
  server: SkypilotApiServer,
  names: readonly string[],
  call: Call,
): Promise<Observation> {
  return observed(
    answerOf(listSchema, await server.ask('/cost_report', { days: 36_500, cluster_names: names }, call)),
    [],
  );
}

/** The workspaces whose clusters our account sees. @throws Error if they are unknown */
export async function visibleWorkspaces(server: SkypilotApiServer, call: Call): Promise<ReadonlySet<string>> {
  const answer = await server.ask('/workspaces', null, call);
  return new Set(Object.keys(answerOf(z.record(z.string(), z.unknown()), answer)));
}

function observed(reports: readonly unknown[], states: readonly unknown[]): Observation {
  const autostops = new Map<string, number>();
  for (const state of states) {
    const { data } = statusSchema.safeParse(state);
    if (data !== undefined) {
      autostops.set(keyOf(data.workspace, data.name), data.autostop ?? -1);
    }
  }
  const byKey = new Map<string, Report[]>();
  let unreadable = 0;
  for (const report of reports) {
    const { data } = reportSchema.safeParse(report);
    if (data === undefined) {
      unreadable += 1;
      continue;
    }
    addTo(byKey, keyOf(data.workspace, data.name), data);
  }
  const clusters = new Map<string, ObservedCluster>();
  for (const [key, same] of byKey) {
    clusters.set(key, clusterOf(same, autostops.get(key)));
  }
  return { clusters, unreadable };
}

export function keyOf(workspace: string | null | undefined, name: string): string {
  return `${workspace || 'default'}/${name}`;
}

function clusterOf(reports: readonly Report[], autostop: number | undefined): ObservedCluster {
  const latest = reports.reduce((one, other) => (startOf(other) > startOf(one) ? other : one));
  return {
    name: latest.name,
    owner: ownerOf(latest),
    runs: reports.flatMap(runsOf).sort((a, b) => (a.from < b.from ? -1 : a.from > b.from ? 1 : 0)),
    autostop,
    exists: reports.some(({ status }) => status !== null && status !== undefined),
  };
}

function ownerOf({ workspace, user_hash: userId, user_name: userName }: Report): LaunchOwner {
  return { workspace: workspace || 'default', userId: userId ?? '', userName: userName ?? '' };
}

function startOf({ launched_at, usage_intervals }: Report): number {
  return usage_intervals?.at(-1)?.[0] ?? launched_at ?? 0;
}

function runsOf(report: Report): ObservedRun[] {
  const { usage_intervals, status } = report;
  const hardware = hardwareShown(report);
  const owner = ownerOf(report);
  return (usage_intervals ?? []).flatMap(([from, closed]) => {
    // SkyPilot closes the last interval when the cluster stops. If an ended cluster left it open, its end is
    // unknown.
    const end = closed ?? (status === null || status === undefined ? from : undefined);
    const until = end === undefined ? undefined : instant(Math.max(end, from));
    return [{ from: instant(from), until, hardware, owner }];
  });
}

function instant(second: number): bigint {
  return BigInt(Math.round(second * 1e6));
}

/**
 * From SkyPilot's report about a cluster: `accelerators` is a Python dictionary as text, `{'A100': 8}`, or
 * `None`; `resources_str_full` is for display, and the only field that shows spot instances. Source: SkyPilot
 * 0.13 and 1.0.0-dev, `_update_record_with_resources`.
 */
type ShownHardware = Partial<
  Pick<Report, 'num_nodes' | 'cloud' | 'region' | 'accelerators' | 'resources_str_full'>
>;

/** `undefined` = unreadable. */
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
    // Only before the parenthesis: after it are texts of the user, such as the name of an image.
    isSpot: /^[^(]*\bspot\b/i.test(full ?? ''),
    shownType: typeShown(full ?? ''),
  };
}

/**
 * The part without a name in `2x[spot](gpus=A100:8, cpus=96, mem=1152, p4d.24xlarge, disk=256)`. Images and
 * disks follow it.
 */
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
