import { expect, it } from 'vitest';
import { Deadline } from '../../../src/base/deadline.ts';
import { listedUser, type Requester } from '../../../src/server/budgets/named-accounts.ts';
import { type Caller, tokenCaller } from '../../../src/server/users/caller.ts';
import { member } from '../served-generation.ts';

it('names of users are looked up only for those who may know about users of other projects', async () => {
  const asked: string[] = [];
  const keystone = {
    getIdentity: async (path: string) => {
      asked.push(path);
      return { status: 404, body: '', header: () => undefined };
    },
  };
  const listed = async (caller: Caller) => {
    const deadline = new Deadline(60);
    const requester = { caller, deadline, generation: { enforcement: { keystone } } } as unknown as Requester;
    return listedUser(requester, 'bob@Default');
  };
  expect(await listed(member('meg', { climate: false }))).toBe('bob@Default');
  expect(asked).toEqual([]);
  for (const caller of [member('mona', { climate: true }), tokenCaller('reader', 'reader token')]) {
    await expect(listed(caller)).rejects.toMatchObject({ status: 503 });
  }
  expect(asked.length).toBeGreaterThan(1);
});
