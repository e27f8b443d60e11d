import { describe, expect, it } from 'vitest';
import type { Generation } from '../../src/server/generation.ts';
import { fixedPerson, type Person } from '../../src/server/people/person.ts';
import { PeopleLine } from '../../src/server/people-line.ts';

const generation = { options: { deadline: 60 } } as Pick<Generation, 'options'>;
const member = (userId: string): Person => ({
  ...{ kind: 'member', provenBy: 'keystone', who: userId, name: userId, userId },
  memberships: [{ projectId: 'climate', isManager: false }],
});

describe('the line of people', () => {
  it('leaves room for others, however much one member asks at the same time', async () => {
    const line = new PeopleLine();
    let answer = () => {};
    const slow = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const ask = (person: Person) => line.run(generation, person, () => slow);
    const mine = Array.from({ length: 16 }, () => ask(member('meg')));
    await expect(ask(member('meg'))).rejects.toThrow('too many requests of this user at the same time');
    const quick = (person: Person) => line.run(generation, person, async () => 'answered');
    expect(await quick(member('max'))).toBe('answered');
    expect(await quick(fixedPerson('operator', 'operator token'))).toBe('answered');
    answer();
    await Promise.all(mine);
    expect(await quick(member('meg'))).toBe('answered');
  });

  it('does not count tokens of the configuration, which many may show', async () => {
    const line = new PeopleLine();
    const reader = fixedPerson('reader', 'reader token');
    const all = Array.from({ length: 100 }, () => line.run(generation, reader, async () => 1));
    expect(await Promise.all(all)).toHaveLength(100);
  });

  it('forgets requests that fail', async () => {
    const line = new PeopleLine();
    for (let count = 0; count < 20; count += 1) {
      await expect(
        line.run(generation, member('meg'), () => Promise.reject(new Error('away'))),
      ).rejects.toThrow('away');
    }
  });
});
