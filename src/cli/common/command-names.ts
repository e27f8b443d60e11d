/** What Keystone calls the projects and users that commands print or are given, if `[keystone] resolve_names` is true. */

import { errorText } from '../../base/errors.ts';
import type { Selection } from '../../decisions/selection.ts';
import type { Configuration } from '../../enforcement/configuration.ts';
import { UsageError, warn } from './output.ts';

/** Ids as they are printed. */
export interface CommandNames {
  readonly project: (id: string) => string;
  readonly user: (id: string) => string;
  /** Fields beside ids in JSON; empty unless `resolve_names` is true. */
  fields(projectId: string, userId: string | null): Readonly<Record<string, string | null>>;
}

interface NamedIds {
  readonly projectId: string | null;
  readonly userId: string | null;
}

const UNNAMED: CommandNames = { project: (id) => id, user: (id) => id, fields: () => ({}) };
/** A command waits longer than a request. */
const WAIT_MS = 10_000;

/** The names of the ids in some rows. Ids that Keystone does not name are printed alone, after a warning. */
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

/** `of`: what is known of an id. */
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
 * The id of a project or a user that somebody has typed: an id as it is, or with `resolve_names` that of a `name@domain`. Without it every
 * text is an id. @throws UsageError
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

/** What to search for, with the ids of who is called so now beside names, if `resolve_names` is true. */
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

/** Asks Keystone. `undefined` = it is not to be asked. */
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
