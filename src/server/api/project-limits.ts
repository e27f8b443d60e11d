/** The limits that apply to a project: the relevant options of the enabled filters, with their origins. */
import { z } from 'zod';
import { formatOrigin } from '../../base/errors.ts';
import { isMapping } from '../../base/yaml/tree.ts';
import { showValue } from '../../config/secret.ts';
import type { Configuration } from '../../enforcement/configuration.ts';
import { AccountList, nameText, projectOf } from '../../filter/account-limits.ts';
import type { RequestNames } from '../../filter/verdict.ts';
import type { Generation } from '../configuration/generation.ts';
import type { Caller } from '../users/caller.ts';

type Setting = Configuration['settings'][number];

export const limitsSchema = z.strictObject({
  filter: z.string(),
  audit: z.boolean().meta({ description: 'true = the filter only warns.' }),
  options: z.array(
    z.strictObject({
      option: z.string(),
      description: z.string(),
      unit: z.string().nullable(),
      value: z.unknown().meta({
        description:
          'null = not set, or hidden. Of limits of single accounts, only those that concern the project. Secrets are ****.',
      }),
      hidden: z.boolean().meta({ description: 'Whether the value is hidden from members.' }),
      default: z.boolean().meta({ description: 'Whether the default applies.' }),
      origin: z
        .string()
        .nullable()
        .meta({
          description: 'Where the option is set; null for members.',
          examples: ['/etc/blazar/blazar.conf:7'],
        }),
    }),
  ),
});

export type FilterLimits = z.infer<typeof limitsSchema>;
export type LimitOption = FilterLimits['options'][number];

/** What a caller sees of a project; `isExempt`: whether its leases skip all filters. */
export function limitsFor(
  { generation, caller }: { readonly generation: Generation; readonly caller: Caller },
  projectId: string,
) {
  const { configuration, enforcement } = generation;
  const { userId } = caller;
  const names = enforcement.names?.known({ project_id: projectId, user_id: userId ?? '' });
  const viewer = { isMember: caller.kind === 'member', userId };
  return {
    isExempt: isExempt(configuration, projectId, names),
    limits: projectLimits(configuration, projectId, names, viewer),
  };
}

export function isExempt(
  { exemptProjects }: Configuration,
  projectId: string,
  names: RequestNames | undefined,
): boolean {
  return new AccountList(exemptProjects).has(projectOf({ project_id: projectId }, names));
}

/**
 * In the order in which the filters run. Members see values of enforced filters and their own limits, but no
 * file paths, and nothing of other projects or the service.
 */
export function projectLimits(
  { filters, settings }: Configuration,
  projectId: string,
  names: RequestNames | undefined,
  { isMember, userId }: { readonly isMember: boolean; readonly userId: string | null },
): FilterLimits[] {
  const keys = {
    tag: names?.project?.tags ?? [],
    id: [projectId, names?.project && nameText(names.project), userId],
  };
  const limitOption = (setting: Setting): LimitOption => {
    const { option, origin, secret } = setting;
    const isHidden = isMember && (secret || !isForMembers(setting));
    const kind = keyKind(option, isMember);
    const value = kind === 'any' ? setting.value : narrowedTo(setting, keys[kind]);
    return {
      option: option.name,
      description: option.help,
      unit: option.unit ?? null,
      value: isHidden ? null : (showValue(value, secret) ?? null),
      origin: isMember ? null : formatOrigin(origin),
      hidden: isHidden,
      default: origin.kind === 'default',
    };
  };
  const ofChain = settings.filter(({ option }) => option.section === 'enforcement');
  // Members must not see filters in audit mode: these are not announced yet.
  const shown = filters.filter(({ audit }) => !(audit && isMember));
  return shown.map(({ installed, audit }) => {
    const own = new Set(installed.options.map(({ name }) => name));
    const options = ofChain.filter(({ option }) => own.has(option.name)).map(limitOption);
    return { filter: installed.name, audit, options };
  });
}

/** Options whose ids are flavors, not projects or users. */
const IDS_OF_OTHERS: ReadonlySet<string> = new Set(['usage_budget_flavor_rates']);

/**
 * The keys in a list or dictionary that concern a project; `any` = all. Limits of users concern their
 * projects: callers that may see everything see all of them.
 */
function keyKind({ name, names }: Setting['option'], isMember: boolean): 'tag' | 'id' | 'any' {
  if (names.some((kind) => kind.startsWith('tag'))) {
    return 'tag';
  }
  const isOfAccounts = names.some((kind) => kind === 'name@domain' || kind.startsWith('id'));
  const isOfAll = IDS_OF_OTHERS.has(name) || (!isMember && /(^|_)users?_/.test(name));
  return isOfAccounts && !isOfAll ? 'id' : 'any';
}

function narrowedTo({ value, option }: Setting, keys: readonly unknown[]): unknown {
  const concerns = (key: string) => {
    const slash = option.names.some((kind) => kind.endsWith('/resource type')) ? key.lastIndexOf('/') : -1;
    return keys.includes(key) || (slash >= 0 && keys.includes(key.slice(0, slash)));
  };
  if (Array.isArray(value)) {
    return value.filter((item) => typeof item === 'string' && concerns(item));
  }
  return isMapping(value)
    ? Object.fromEntries(Object.entries(value).filter(([key]) => concerns(key)))
    : value;
}

/** Limits of leases. Paths and addresses of the service, and names of unknown kinds, are only for operators. */
function isForMembers({ option, value }: Setting): boolean {
  if (option.file || option.secretFile || option.watched) {
    return false;
  }
  if (option.type === 'list' || option.type === 'dictionary') {
    return option.names.length > 0;
  }
  return typeof value !== 'string' || !/[/\\@]/.test(value);
}
