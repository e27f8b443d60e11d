/** Parses a question about an effective value, and reports its mistakes. */
import type { Problem } from '../../../base/errors.ts';
import { isMapping, type Mapping, nested, valueAt } from '../../../base/yaml/tree.ts';
import { readerOf, regionMember } from './readers.ts';
import { poolContext } from './rules.ts';

const MAX_KEY = 2000;
/** Maximum number of listed names. */
const MAX_NAMES = 10;

/** `kubernetes.pod_config.spec.tolerations[0]`; `undefined` = a step has no name. */
export function keyOf(text: string): string[] | undefined {
  const steps = text.length > MAX_KEY ? [''] : text.replace(/(?<=[^.[])\[(\d+)\]/g, '.[$1]').split('.');
  return steps.includes('') ? undefined : steps;
}

/** The workspace of a configuration, as SkyPilot determines it. */
export function workspaceOf(tree: Mapping): string {
  const { active_workspace: active } = tree;
  return typeof active === 'string' ? active : 'default';
}

interface AskedPlace {
  readonly context?: string;
  readonly region?: string;
  readonly zone?: string;
  readonly workspace: string;
}

/** The context or region for a key, and warnings about names that are missing in the configuration. */
export function placeProblems(
  tree: Mapping,
  key: readonly string[],
  { context, region, zone, workspace }: AskedPlace,
): { problems: Problem[]; region: string | undefined } {
  const [cloud = ''] = key;
  const problems: Problem[] = [];
  const warn = (message: string) => problems.push({ severity: 'warning', message });
  const workspaces = namesIn(tree, ['workspaces']);
  if (workspace !== 'default' && !workspaces.includes(workspace)) {
    warn(`workspace "${workspace}": not in the configuration${listed(workspaces)}`);
  }
  const hasContexts = regionMember(cloud) === 'context_configs';
  if (context !== undefined && !hasContexts) {
    warn(`--context: only kubernetes and ssh have contexts, so it has no effect on ${key.join('.')}`);
  }
  if (hasContexts && context !== undefined && region !== undefined && region !== context) {
    warn(`--region: the region of ${cloud} is its context, so ${context} is used`);
  }
  const asked = hasContexts ? (context ?? region) : region;
  const isRegional = regionMember(cloud) !== undefined || readerOf(key)?.rule === 'by region';
  if (!hasContexts && region !== undefined && !isRegional) {
    warn(`--region: ${key.join('.')} has no values by region, so it has no effect`);
  }
  if (zone !== undefined && (cloud !== 'slurm' || asked === undefined)) {
    warn('--zone: only partitions of slurm have values of their own, with --region for the cluster');
  }
  const known = regionsOf(tree, cloud);
  if (asked !== undefined && known.length > 0 && !known.includes(bare(cloud, asked))) {
    warn(
      `${cloud} has no ${hasContexts ? 'context' : 'region'} "${asked}" in the configuration${listed(known)}`,
    );
  }
  return { problems, region: asked };
}

function regionsOf(tree: Mapping, cloud: string): string[] {
  const holder = regionMember(cloud);
  if (holder === undefined) {
    return [];
  }
  const paths = [[cloud], ...namesIn(tree, ['workspaces']).map((name) => ['workspaces', name, cloud])];
  const names = paths.flatMap((path) => [
    ...namesIn(tree, [...path, holder]),
    ...['allowed_contexts', 'allowed_node_pools', 'allowed_clusters'].flatMap((list) =>
      textsIn(valueAt(tree, [...path, list])),
    ),
  ]);
  return [...new Set(names.map((name) => bare(cloud, name)))];
}

const bare = (cloud: string, name: string) => (cloud === 'ssh' ? poolContext(name, true) : name);

const textsIn = (value: unknown) =>
  Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : [];

function namesIn(tree: Mapping, path: readonly string[]): string[] {
  const value = valueAt(tree, path);
  return isMapping(value) ? Object.keys(value) : [];
}

function listed(names: readonly string[]): string {
  if (names.length === 0) {
    return '';
  }
  const more = names.length > MAX_NAMES ? `, and ${names.length - MAX_NAMES} more` : '';
  return `; named there: ${names.slice(0, MAX_NAMES).join(', ')}${more}`;
}

/**
 * The mistake of a key that is nowhere in SkyPilot's schema: neither in the general configuration, nor by
 * region or in a workspace. `undefined` = it is in the schema.
 */
export async function unknownKey(key: readonly string[]): Promise<string | undefined> {
  if (readerOf(key) !== undefined) {
    return undefined;
  }
  const { validateConfig } = await import('../../schema/validate.ts');
  const list = key.findIndex((step) => step.startsWith('['));
  const names = list === -1 ? key : key.slice(0, list);
  const [cloud = '', ...rest] = names;
  const holder = regionMember(cloud);
  const places = [
    names,
    ...(holder === undefined ? [] : [[cloud, holder, 'any', ...rest]]),
    ['workspaces', 'any', ...names],
  ];
  const found = places.map((place) =>
    validateConfig(nested(place, {}) as Mapping, () => undefined).find(({ message }) =>
      message.includes('unknown key'),
    ),
  );
  return found.includes(undefined) ? undefined : found[0]?.message;
}
