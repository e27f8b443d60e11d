/** What Keystone calls the projects and users that commands print or are given, if `[keystone] resolve_names` is true. */

import { errorText } from '../../base/errors.ts';
import type { Selection } from '../../decisions/selection.ts';
import type { Configuration } from '../../enforcement/configuration.ts';
import { onOneLine, UsageError } from './output.ts';

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
  const opened = await openedKeystone(configuration);
  if (opened === undefined) {
    return UNNAMED;
  }
  const { keystone, options, parts } = opened;
  const { Names } = await import('../../openstack/names.ts');
  const { nameText } = await import('../../filter/account-limits.ts');
  try {
    const names = new Names(keystone, options, parts);
    const present = (ids: readonly (string | null)[]) => ids.flatMap((id) => id ?? []);
    await names.learn(
      present(rows.map(({ projectId }) => projectId)),
      present(rows.map(({ userId }) => userId)),
      WAIT_MS,
    );
    const of = (kind: 'project' | 'user', id: string) => names.known({ project_id: id, user_id: id })[kind];
    const text = (kind: 'project' | 'user') => (id: string) => {
      const named = of(kind, id);
      return named === undefined ? id : `${nameText(named)} (${id})`;
    };
    const isUnnamed = rows.some(
      ({ projectId }) => projectId !== null && of('project', projectId) === undefined,
    );
    if (isUnnamed) {
      const why = names.why(rows.flatMap(({ projectId }) => projectId ?? []));
      process.stderr.write(`${onOneLine(`warning: Keystone does not tell all names: ${why}`)}\n`);
    }
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
  } finally {
    await keystone.close();
  }
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
  const opened = await openedKeystone(configuration);
  if (opened === undefined) {
    const warning = `warning: ${kind} ${text} is taken for an id: names need [keystone] resolve_names = true`;
    process.stderr.write(`${onOneLine(warning)}\n`);
    return text;
  }
  const { accountIdOf } = await import('../../openstack/identity-records.ts');
  let id: string | undefined;
  try {
    id = await accountIdOf(opened.keystone, kind, text);
  } catch (thrown) {
    throw new UsageError(`${kind} ${text}: its id cannot be told: ${errorText(thrown)}`);
  } finally {
    await opened.keystone.close();
  }
  if (id === undefined) {
    throw new UsageError(`Keystone has no ${kind} ${text}: expected an id, or name@domain`);
  }
  return id;
}

/** What to search for, with the ids of who is called so now beside names, if `resolve_names` is true. */
export async function selectionWithIds(
  configuration: Configuration,
  selection: Selection,
): Promise<Selection> {
  const texts = [...(selection.projects ?? []), ...(selection.users ?? [])];
  const opened = texts.some((text) => text.includes('@')) ? await openedKeystone(configuration) : undefined;
  if (opened === undefined) {
    return selection;
  }
  const { Names } = await import('../../openstack/names.ts');
  try {
    return await new Names(opened.keystone, opened.options, opened.parts).withIds(selection);
  } finally {
    await opened.keystone.close();
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
