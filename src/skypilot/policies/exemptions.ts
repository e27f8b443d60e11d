/**
 * Exemptions from all policies. Users must not be able to claim one:
 *
 * - A user counts by id, not by name: the creator of a service account chooses its name. Without
 *   authentication at SkyPilot's API server, a client chooses its id, too; SkyPilot then sends an empty
 *   `user_type`.
 * - A workspace counts if it is private in the server's configuration, which no client can override.
 *   SkyPilot's server has checked that the user is a member. Every user may choose any other workspace.
 * - Requests of the client side are never exempt: neither user nor workspace has been checked.
 *
 * Source: SkyPilot 0.13, `server/requests/executor.py` and `workspaces/core.py`.
 */

import { isMapping, type Mapping, member } from '../../base/yaml/tree.ts';
import type { ExtensionProblem } from '../../config/option-groups.ts';
import { showText } from '../../config/secret.ts';
import type { SkypilotOptions } from '../options.ts';
import type { Task } from '../request/user-request.ts';
import type { ReceivedRequest } from '../request/wire.ts';
import type { State } from '../review.ts';

type ExemptionOptions = Pick<SkypilotOptions, 'exempt_users' | 'exempt_workspaces'>;

/** SkyPilot's user ids: a part of a hash, or `sa-…` for a service account. */
const USER_ID = /^(?:[0-9a-f]{8}|sa-[a-z0-9-]+)$/;
const WORKSPACE = 'active_workspace';

/** Whether a request is exempt, or why an apparent exemption does not apply. */
interface Exemption {
  readonly isExempt: boolean;
  readonly reason: string;
}

export class Exemptions {
  readonly #users: ReadonlySet<string>;
  readonly #workspaces: ReadonlySet<string>;

  constructor({ exempt_users, exempt_workspaces }: ExemptionOptions) {
    this.#users = new Set(exempt_users.map(idOf));
    this.#workspaces = new Set(exempt_workspaces);
  }

  /** `undefined` = neither its user nor its workspace is listed. */
  of(request: ReceivedRequest, { task, skypilotConfig }: State): Exemption | undefined {
    if (request.atClientSide) {
      return undefined;
    }
    const byUser = this.#ofUser(request);
    const byWorkspace = this.#ofWorkspace(task, skypilotConfig);
    return byUser?.isExempt === true ? byUser : (byWorkspace ?? byUser);
  }

  #ofUser({ user, isUserUnverified }: ReceivedRequest): Exemption | undefined {
    if (user === null || !this.#users.has(idOf(user.id))) {
      return undefined;
    }
    return isUserUnverified === true
      ? {
          isExempt: false,
          reason: `The user ${user.id} is in exempt_users, but SkyPilot has not authenticated the user: policies apply.`,
        }
      : { isExempt: true, reason: `The user ${user.id} is in exempt_users: no policy was called.` };
  }

  #ofWorkspace(task: Task, config: Mapping): Exemption | undefined {
    const name = member(config, WORKSPACE);
    if (typeof name !== 'string' || !this.#workspaces.has(name)) {
      return undefined;
    }
    const named = `The workspace ${showText(name)} is in exempt_workspaces`;
    if (!isPrivate(config, name)) {
      return {
        isExempt: false,
        reason: `${named}, but it is not private in SkyPilot's configuration, so every user may choose it: policies apply.`,
      };
    }
    return namesAnother(task, name)
      ? { isExempt: false, reason: `${named}, but the task names another workspace: policies apply.` }
      : { isExempt: true, reason: `${named}: no policy was called.` };
  }
}

/** A warning for each text that is not a user id of SkyPilot: names never apply. */
export function exemptionProblems({
  exempt_users,
}: Pick<SkypilotOptions, 'exempt_users'>): ExtensionProblem[] {
  return exempt_users
    .filter((id) => !USER_ID.test(idOf(id)))
    .map((id) => ({
      severity: 'warning',
      option: 'exempt_users',
      message: `${showText(id)} does not look like an id of SkyPilot, such as 1f3870be or sa-1f3870be; names do not apply, since users choose them`,
    }));
}

/** SkyPilot writes ids in lower case. */
function idOf(id: string): string {
  return id.toLowerCase();
}

function isPrivate(config: Mapping, name: string): boolean {
  const workspaces = member(config, 'workspaces');
  const workspace = isMapping(workspaces) ? member(workspaces, name) : undefined;
  return isMapping(workspace) && member(workspace, 'private') === true;
}

/** Whether a task sets `active_workspace`, in `config` or in its resources, to another value. */
function namesAnother(value: unknown, name: string): boolean {
  if (Array.isArray(value)) {
    return value.some((item) => namesAnother(item, name));
  }
  return (
    isMapping(value) &&
    Object.entries(value).some(([key, item]) =>
      key === WORKSPACE ? item !== name : namesAnother(item, name),
    )
  );
}
