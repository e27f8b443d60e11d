/** Keystone's names of projects and users for commands, if `[keystone] resolve_names` is true. */

import { errorText } from '../../base/errors.ts';
import type { Selection } from '../../decisions/selection.ts';
import type { Configuration } from '../../enforcement/configuration.ts';
import { UsageError, warn } from './output.ts';

/** Formats ids for output. */
export interface CommandNames {
  readonly project: (id: string) => string;
  readonly user: (id: string) => string;
  /** JSON fields beside the ids; empty unless `resolve_names` is true. */
  fields(projectId: string, userId: string | null): Readonly<Record<string, string | null>>;
}

interface NamedIds {
  readonly projectId: string | null;
  readonly userId: string | null;
}

const UNNAMED: CommandNames = { project: (id) => id, user: (id) => id, fields: () => ({}) };
/** Longer than the timeout of a request. */
const WAIT_MS = 10_000;

/** The names of the ids in some rows. Ids without a name are printed alone, with a warning. */
export async function commandNames(
  configuration: Configuration,
  rows: readonly NamedIds[],
): Promise<CommandNames> {
  const named = await withKeystone(configuration, async ({ keystone, options, parts }) => {
    const { Names } = await import('../../openstack/names.ts');
    const names = new Names(keystone, options, parts);
    const projectIds = rows.flatMap(({ projectId }) => projectId ?? []);
    const userIds = rows.flatMap(({ userId }) => userId ?? []);
    await names.learn(projectIds, userIds, WAIT_MS);
    const of = (kind: 'project' | 'user', id: string) => names.known({ project_id: id, user_id: id })[kind];
    if (projectIds.some((id) => of('project', id) === undefined)) {
      warn(`Keystone did not return all names: ${names.why(projectIds)}`);
    }
    return namesBy(of);
  });
  return named ?? UNNAMED;
}

interface Account {
  readonly name?: string | null | undefined;
  readonly domain?: string | null | undefined;
}

/** `of`: the known account of an id. */
export function namesBy(of: (kind: 'project' | 'user', id: string) => Account | undefined): CommandNames {
  const text = (kind: 'project' | 'user') => (id: string) => namedCell(id, of(kind, id));
  return {
    project: text('project'),
    user: text('user'),
    fields: (projectId, userId) => {
      const project = of('project', projectId);
      const user = userId === null ? undefined : of('user', userId);
      return {
        project_name: project?.name ?? null,
        project_domain: project?.domain || null,
        user_name: user?.name ?? null,
        user_domain: user?.domain || null,
      };
    },
  };
}

/** `climate@Default (3d9b…)`, or the id alone. */
export function namedCell(id: string | null | undefined, { name, domain }: Account = {}): string {
  const shown = id ?? '';
  return name ? `${domain ? `${name}@${domain}` : name} (${shown})` : shown;
}

/**
 * The id of a typed project or user: an id as is, or with `resolve_names` that of a `name@domain`. Without
 * it, every text is an id. @throws UsageError
 */
export async function typedId(
  configuration: Configuration,
  kind: 'project' | 'user',
  text: string,
): Promise<string> {
  if (!text.includes('@')) {
    return text;
  }
  const { accountIdOf } = await import('../../openstack/identity-records.ts');
  const found = await withKeystone(configuration, async ({ keystone }) => {
    try {
      return { id: await accountIdOf(keystone, kind, text) };
    } catch (thrown) {
      throw new UsageError(`${kind} ${text}: its id is not known: ${errorText(thrown)}`);
    }
  });
  if (found === undefined) {
    warn(`${kind} ${text} is taken for an id: names need [keystone] resolve_names = true`);
    return text;
  }
  if (found.id === undefined) {
    throw new UsageError(`Keystone has no ${kind} ${text}: expected an id, or name@domain`);
  }
  return found.id;
}

/** The selection; if `resolve_names` is true, with the current ids of its names. */
export async function selectionWithIds(
  configuration: Configuration,
  selection: Selection,
): Promise<Selection> {
  const texts = [...(selection.projects ?? []), ...(selection.users ?? [])];
  if (!texts.some((text) => text.includes('@'))) {
    return selection;
  }
  const { Names } = await import('../../openstack/names.ts');
  const found = await withKeystone(configuration, ({ keystone, options, parts }) =>
    new Names(keystone, options, parts).withIds(selection),
  );
  return found ?? selection;
}

/** Calls Keystone. `undefined` = `resolve_names` is not true. */
async function withKeystone<Result>(
  configuration: Configuration,
  ask: (opened: NonNullable<Awaited<ReturnType<typeof openedKeystone>>>) => Promise<Result>,
): Promise<Result | undefined> {
  const opened = await openedKeystone(configuration);
  try {
    return opened && (await ask(opened));
  } finally {
    await opened?.keystone.close();
  }
}

async function openedKeystone(configuration: Configuration) {
  const { sectionOf } = await import('../../enforcement/configuration.ts');
  const { keystoneSection } = await import('../../openstack/options.ts');
  const options = sectionOf(configuration, keystoneSection);
  if (!options.resolve_names) {
    return undefined;
  }
  const { keystoneOf } = await import('../../enforcement/keystone.ts');
  const { createSharedServices } = await import('../../enforcement/services.ts');
  const quiet = () => {};
  const logger = { debug: quiet, info: quiet, warn: quiet, error: quiet };
  const shared = createSharedServices({ logger });
  const keystone = await keystoneOf(configuration, shared);
  return keystone && { keystone, options, parts: { logger, clock: shared.clock } };
}
