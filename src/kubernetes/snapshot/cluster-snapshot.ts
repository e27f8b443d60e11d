/** Policies and rights of a cluster at one moment: the source of commands that ask it. */
import type { Account } from '../access.ts';
import type { UsePermissions } from '../live/contract.ts';
import type { PolicySet } from '../policy-set.ts';
import type { AccountPolicies, PolicySource } from '../policy-source.ts';

export class ClusterSnapshot implements PolicySource {
  readonly set: PolicySet;
  /** Of all policies, valid or not, sorted. */
  readonly names: readonly string[];
  readonly #permissions: UsePermissions;

  constructor(set: PolicySet, permissions: UsePermissions) {
    this.set = set;
    this.names = [...set.policies, ...set.invalid].map(({ name }) => name).sort();
    this.#permissions = permissions;
  }

  /** @throws ApiError @throws ApiUnreachableError */
  async policiesOf(account: Account): Promise<AccountPolicies> {
    return this.set.chosen(
      this.names.length === 0 ? [] : await this.#permissions.usable(account, this.names),
    );
  }
}
