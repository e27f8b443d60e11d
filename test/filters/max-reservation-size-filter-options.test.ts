import { describe, expect, it } from 'vitest';
import type { Context } from '../../src/index.ts';
import { rejectedWith } from '../support/decisions.ts';
import { mistakes } from './loaded.ts';
import { hosts, load, of, reserving } from './reservation-sizes.ts';

describe('limits for users and projects', () => {
  const LINES = [
    'max_reservation_size = physical:host:10, network:1',
    'max_reservation_size_project_limits = climate/physical:host:20, a/b/physical:host:5',
    'max_reservation_size_user_limits = alice/physical:host:30, bob/physical:host:2',
  ];
  const most = async (user_id: string, project_id: string, lines: readonly string[] = LINES) => {
    const enforcement = await load(lines);
    const ask = async (count: number) =>
      (await enforcement.checkCreate(reserving([hosts(count)], { user_id, project_id }))).allowed;
    const asked = await Promise.all(
      [0, 2, 3, 5, 6, 10, 11, 20, 21, 30, 31].map(async (count) => ({ count, allowed: await ask(count) })),
    );
    return asked.findLast(({ allowed }) => allowed)?.count;
  };

  it('for users override those for projects, which override the general limit', async () => {
    expect(await most('carol', 'physics')).toBe(10);
    expect(await most('carol', 'climate')).toBe(20);
    expect(await most('alice', 'climate')).toBe(30);
    expect(await most('alice', 'physics')).toBe(30);
    expect(await most('bob', 'climate')).toBe(2);
    expect(await most('carol', 'a/b')).toBe(5);
    expect(await most('carol', 'a')).toBe(10);
  });

  it('are kept apart: a project with the name of a user is not that user', async () => {
    expect(await most('climate', 'alice')).toBe(10);
  });

  it('are removed with -1, each separately', async () => {
    const general = 'max_reservation_size = physical:host:10';
    const project = (count: number) => `max_reservation_size_project_limits = climate/physical:host:${count}`;
    const user = (count: number) => `max_reservation_size_user_limits = alice/physical:host:${count}`;
    expect(await most('alice', 'climate', [general, project(-1)])).toBe(31);
    expect(await most('alice', 'physics', [general, project(-1)])).toBe(10);
    expect(await most('alice', 'climate', [general, project(20), user(-1)])).toBe(31);
    expect(await most('bob', 'climate', [general, project(20), user(-1)])).toBe(20);
    expect(await most('alice', 'climate', [general, project(-1), user(2)])).toBe(2);
    expect(await most('alice', 'climate', ['max_reservation_size = physical:host:-1', project(5)])).toBe(5);
  });

  it('apply only to their resource type', async () => {
    const enforcement = await load(LINES);
    expect(await enforcement.checkCreate(reserving([of('network', 2), hosts(30)]))).toMatchObject(
      rejectedWith('The lease reserves up to 2 of network; the most allowed for any lease is 1.'),
    );
  });

  it('are named in the rejection', async () => {
    const enforcement = await load(LINES);
    const message = async (count: number, context: Partial<Context>) =>
      (await enforcement.checkCreate(reserving([hosts(count)], context))).message;
    expect(await message(31, {})).toBe(
      'The lease reserves up to 31 of physical:host; the most allowed for user alice is 30.',
    );
    expect(await message(21, { user_id: 'carol' })).toBe(
      'The lease reserves up to 21 of physical:host; the most allowed for project climate is 20.',
    );
  });
});

describe('the options of MaxReservationSizeFilter', () => {
  const wrong = (name: string, pairs: string, got: string, detail = '') =>
    `blazar.conf:3: [enforcement] ${name}: expected ${pairs} pairs with commas between them, each value a whole number or -1, got "${got}"${detail}`;

  it.each([
    ['physical:host:1.5', ''],
    ['physical:host', ''],
    ['physical:host:-2', ' (see "physical:host")'],
  ])('refuse %j, with file, line and text', async (text, detail) => {
    expect(await mistakes('MaxReservationSizeFilter', [`max_reservation_size = ${text}`])).toEqual([
      wrong('max_reservation_size', 'resource type:count', text, detail),
    ]);
  });

  it.each([
    ['physical:host:10', 'physical:host'],
    ['climate/:10', 'climate/'],
    ['/physical:host:10', '/physical:host'],
    ['climate/physical:host:-2', 'climate/physical:host'],
  ])('for users and projects refuse %j: they need an id, a slash, a type and a count', async (text, name) => {
    for (const who of ['project', 'user']) {
      const option = `max_reservation_size_${who}_limits`;
      expect(await mistakes('MaxReservationSizeFilter', [`${option} = ${text}`])).toEqual([
        wrong(option, `${who} id/resource type:count`, text, ` (see "${name}")`),
      ]);
    }
  });
});
