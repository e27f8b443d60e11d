import { type Account, projectOf, userOf } from '../../filter/account-limits.ts';
import type { RequestNames } from '../../filter/request-names.ts';
import type { Context } from '../../lease/lease.ts';
import type { IsExempt } from '../judge.ts';

/** Whom rules for leases do not judge: by id, `name@domain`, or a tag of the project. */
export function leaseExemption(context: Context, names: RequestNames | undefined): IsExempt {
  let accounts: { readonly project: Account; readonly user: Account } | undefined;
  return ({ projects, users, tags }) => {
    accounts ??= { project: projectOf(context, names), user: userOf(context, names) };
    const { project, user } = accounts;
    return projects.has(project) || users.has(user) || project.tags.some((tag) => tags.has(tag));
  };
}
