import { expect, it } from 'vitest';
import { Deadline } from '../../../src/base/deadline.ts';
import type { Keystone } from '../../../src/openstack/contract.ts';
import { accountId, listedUser, type Requester } from '../../../src/server/budgets/named-accounts.ts';
import { type Caller, tokenCaller } from '../../../src/server/users/caller.ts';
import { member } from '../served-generation.ts';

function requesterOf(caller: Caller, keystone: Pick<Keystone, 'getIdentity'>): Requester {
  const deadline = new Deadline(60);
  return { caller, deadline, generation: { enforcement: { keystone } } } as unknown as Requester;
}

it('names of users are looked up only for those who may know about users of other projects', async () => {
  const asked: string[] = [];
  const keystone = {
    getIdentity: async (path: string) => {
      asked.push(path);
      return { status: 404, body: '', header: () => undefined };
    },
  };
  const listed = async (caller: Caller) => listedUser(requesterOf(caller, keystone), 'bob@Default');
  expect(await listed(member('meg', { climate: false }))).toBe('bob@Default');
  expect(asked).toEqual([]);
  for (const caller of [member('mona', { climate: true }), tokenCaller('reader', 'reader token')]) {
    await expect(listed(caller)).rejects.toMatchObject({ status: 503 });
  }
  expect(asked.length).toBeGreaterThan(1);
});

it.for(['Climate Research', 'a/b', '..', 'é'])(
  '%s is no id of a project, since Keystone has none that looks so',
  async (text) => {
    const project = { id: '1f37', name: 'climate', domain_id: 'default' };
    const getIdentity = async () => ({ status: 200, body: JSON.stringify({ project }) });
    const requester = requesterOf(tokenCaller('operator', 'operator token'), { getIdentity });
    expect(await accountId(requester, 'project', '1f37', 'project_id')).toBe('1f37');
    await expect(accountId(requester, 'project', text, 'project_id')).rejects.toMatchObject({ status: 422 });
  },
);
