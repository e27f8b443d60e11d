import { AccountList, accountText, projectOf } from '../filter/account-limits.ts';
import type { Decision } from '../filter/verdict.ts';
import type { Lease } from '../lease/lease.ts';
import type { Logger } from '../logger.ts';
import { accepted } from './decision.ts';
import type { HookRequest } from './hook-request.ts';

/** The projects in `exempt_projects`: no filter is asked about their leases. */
export class Exemptions {
  /** By id, or as `name@domain`. */
  readonly projects: readonly string[];
  readonly #list: AccountList;
  readonly #logger: Logger;

  constructor(projects: readonly string[], logger: Logger) {
    this.projects = projects;
    this.#list = new AccountList(projects);
    this.#logger = logger;
  }

  /** The decision for a project that is exempt; `undefined` = it is not, and the filters decide. */
  of(lease: Lease, { operation, context, call }: HookRequest): Decision | undefined {
    const project = projectOf(context, call.names);
    if (!this.#list.has(project)) {
      return undefined;
    }
    const { project_id } = context;
    const warning = `${capitalized(accountText(project))} is in exempt_projects: no filter was asked.`;
    this.#logger.info({ operation, project_id }, warning);
    return { ...accepted(operation, lease, false, []), exempt: true, warnings: [warning] };
  }
}

function capitalized(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
}
