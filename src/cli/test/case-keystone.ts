/** A Keystone that knows the accounts of a case, and opens no connection. */

import { type Keystone, KeystoneError } from '../../openstack/contract.ts';

/** What Keystone says of an id. */
export interface GivenAccount {
  /** Default: the id. */
  readonly name?: string | undefined;
  /** The name of its domain. Default: `Default`. */
  readonly domain?: string | undefined;
  /** Of a project. Default: none. */
  readonly tags?: readonly string[] | undefined;
}

export interface GivenAccounts {
  /** By id. */
  readonly projects: ReadonlyMap<string, GivenAccount>;
  readonly users: ReadonlyMap<string, GivenAccount>;
  /** Keystone answers nothing. */
  readonly isUnavailable: boolean;
}

const DOMAIN = 'Default';
const TOKEN = 'token-of-a-case';

/** An id that it was not given is an account of that name in the domain `Default`. */
export function givenKeystone({ projects, users, isUnavailable }: GivenAccounts): Keystone {
  const refuse = (): void => {
    if (isUnavailable) {
      throw new KeystoneError('unavailable', 'the case says that Keystone is unavailable');
    }
  };
  const answer = (body: unknown) => ({ status: 200, body: JSON.stringify(body) });
  const described = (kind: 'project' | 'user', id: string, account: GivenAccount | undefined) => ({
    id,
    name: account?.name ?? id,
    domain_id: account?.domain ?? DOMAIN,
    ...(kind === 'project' && { tags: account?.tags ?? [] }),
  });
  const identities = { projects: ['project', projects], users: ['user', users] } as const;
  return {
    token: async () => {
      refuse();
      return TOKEN;
    },
    refused: () => {},
    endpoint: async () => Promise.reject(notGiven()),
    get: async () => Promise.reject(notGiven()),
    validate: async () => Promise.reject(notGiven()),
    async getIdentity(path) {
      refuse();
      const url = new URL(path, 'https://keystone.invalid');
      const [kinds = '', id] = url.pathname.split('/').slice(1).map(decodeURIComponent);
      const name = url.searchParams.get('name');
      if (kinds === 'domains') {
        const known = id ?? name;
        return answer(
          id === undefined ? { domains: [{ id: known, name: known }] } : { domain: { id, name: id } },
        );
      }
      if (kinds !== 'projects' && kinds !== 'users') {
        throw notGiven();
      }
      const [kind, accounts] = identities[kinds];
      if (id !== undefined) {
        return answer({ [kind]: described(kind, id, accounts.get(id)) });
      }
      const known = [...accounts].map(([one, account]) => described(kind, one, account));
      return answer({ [kinds]: known.filter((one) => one.name === name) });
    },
    close: async () => {},
  };
}

function notGiven(): KeystoneError {
  return new KeystoneError('unavailable', 'a case calls no Keystone');
}
