import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AccountLimits, AccountList, accountText, projectOf, userOf } from '../../src/index.ts';

const project = (id: string, name?: string, domain = 'Default', tags: readonly string[] = []) =>
  projectOf({ project_id: id }, name === undefined ? {} : { project: { name, domain, tags } });

describe('the limit of an account', () => {
  const limits = new AccountLimits(
    { p1: 1, 'climate@Default': 2, 'a@b@Default': 3, 'two words@My Domain': 4, 'open@Default': -1 },
    { hpc: 10, gpu: 20, free: -1 },
  );
  const of = (...account: Parameters<typeof project>) => limits.find(project(...account))?.limit;

  it('is that of its id, before that of its name, before that of its tags', () => {
    expect(of('p1', 'climate', 'Default', ['hpc'])).toBe(1);
    expect(of('p2', 'climate', 'Default', ['hpc'])).toBe(2);
    expect(of('p2', 'physics', 'Default', ['hpc'])).toBe(10);
    expect(of('p2', 'physics')).toBe(undefined);
    expect(of('p2')).toBe(undefined);
    expect(of('p2', 'open', 'Default', ['hpc'])).toBe(-1);
  });

  it('is not that of a project with the same name in another domain', () => {
    expect(of('p2', 'climate', 'other')).toBe(undefined);
    expect(of('p2', 'climate', 'default')).toBe(undefined);
    expect(of('p2', 'Climate', 'Default')).toBe(undefined);
    expect(of('p2', 'two words', 'My Domain')).toBe(4);
  });

  it('is not that of a project whose domain has an @, and that is written the same', () => {
    expect(of('p2', 'a@b', 'Default')).toBe(3);
    expect(of('p2', 'a', 'b@Default')).toBe(undefined);
  });

  it('is not told by a name without its domain', () => {
    expect(of('p2', 'climate', '')).toBe(undefined);
    expect(of('p2', 'climate@Default', '')).toBe(undefined);
    expect(of('p2', 'climate', '', ['hpc'])).toBe(10);
  });

  it('is the strictest of several tags; no limit is the loosest', () => {
    expect(of('p2', 'x', 'Default', ['gpu', 'hpc', 'free', 'unlisted'])).toBe(10);
    expect(of('p2', 'x', 'Default', ['free', 'gpu'])).toBe(20);
    expect(of('p2', 'x', 'Default', ['free'])).toBe(-1);
  });

  it('is that of an id that looks like a name, whatever its name is', () => {
    expect(of('climate@Default', 'physics')).toBe(2);
  });

  it('belongs to one resource type, and never to another', () => {
    const typed = new AccountLimits(
      { climate: 1, 'climate/physical:host': 2, 'a@D/network': 3, 'x/y/network': 4 },
      { 'hpc/physical:host': 5, hpc: 6 },
      { byType: true },
    );
    const limit = (account: ReturnType<typeof project>, type?: string) => typed.find(account, type)?.limit;
    expect(limit(project('climate'))).toBe(1);
    expect(limit(project('climate'), 'physical:host')).toBe(2);
    expect(limit(project('climate'), 'network')).toBe(undefined);
    expect(limit(project('climate'), '')).toBe(undefined);
    expect(limit(project('climate/physical:host'))).toBe(undefined);
    expect(limit(project('p', 'a', 'D'), 'network')).toBe(3);
    expect(limit(project('x/y'), 'network')).toBe(4);
    expect(limit(project('x'), 'y/network')).toBe(undefined);
    expect(limit(project('p', 'b', 'D', ['hpc']), 'physical:host')).toBe(5);
    expect(limit(project('p', 'b', 'D', ['hpc']))).toBe(6);
  });

  it('of a user comes from no tag of the project', () => {
    const names = { project: { name: 'climate', domain: 'Default', tags: ['hpc'] } };
    expect(limits.find(userOf({ user_id: 'alice' }, names))).toBe(undefined);
  });

  it('by name is found for that project of that domain alone, whatever they are called', () => {
    const text = fc.string({
      minLength: 1,
      maxLength: 8,
      unit: fc.constantFrom('a', 'b', '@', ' ', ':', '.'),
    });
    fc.assert(
      fc.property(
        text,
        text.filter((domain) => !domain.includes('@')),
        text,
        text,
        (name, domain, n, d) => {
          const one = new AccountLimits({ [`${name}@${domain}`]: 1 });
          expect(one.find(project('', n, d))?.limit).toBe(n === name && d === domain ? 1 : undefined);
        },
      ),
    );
  });
});

it('a list of accounts has ids and names; who is not named is only in it by id', () => {
  const list = new AccountList(['p1', 'climate@Default']);
  expect(list.has(project('p1'))).toBe(true);
  expect(list.has(project('p2', 'climate'))).toBe(true);
  expect(list.has(project('p2', 'climate', 'other'))).toBe(false);
  expect(list.has(project('p2'))).toBe(false);
});

it('an account is shown with its name and its id, on one line and with nothing invisible', () => {
  expect(accountText(project('p1'))).toBe('project p1');
  expect(accountText(project('p1', 'climate'))).toBe('project climate@Default (p1)');
  expect(accountText(project('p1', 'climate', ''))).toBe('project climate (p1)');
  expect(accountText(project('p1', 'climate'), { limit: 1, tag: 'hpc' })).toBe(
    'project climate@Default (p1) with the tag hpc',
  );
  expect(accountText(project('p1', 'a\n\u202eb'))).toBe('project a \\u202eb@Default (p1)');
});
