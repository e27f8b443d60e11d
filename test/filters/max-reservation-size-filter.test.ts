import { describe, expect, it } from 'vitest';
import type { Context, CreateRequest } from '../../src/index.ts';
import { ALLOWED, REJECTED, rejectedWith } from '../support/decisions.ts';
import { createGpuAndFloatingIp, createPhysicalHost } from '../support/requests.ts';
import { testFilter } from './contract.ts';
import { hosts, load, of, reserving } from './reservation-sizes.ts';

testFilter({
  name: 'MaxReservationSizeFilter',
  options: () => ({ max_reservation_size: { 'physical:host': 2, 'virtual:floatingip': 1 } }),
});

async function create(
  sizes: string,
  reservations: readonly unknown[] | null | undefined,
  context: Partial<Context> = {},
) {
  return (await load([`max_reservation_size = ${sizes}`, 'resource_types = constructor'])).checkCreate(
    reserving(reservations, context),
  );
}

describe('MaxReservationSizeFilter at create', () => {
  it('allows exactly the limit in the captured requests, and rejects one unit more', async () => {
    const ask = async (sizes: string, request: CreateRequest) =>
      (await load([`max_reservation_size = ${sizes}`])).checkCreate(request);
    expect(await ask('physical:host:2', createPhysicalHost())).toMatchObject(ALLOWED);
    expect(await ask('physical:host:1', createPhysicalHost())).toMatchObject({
      allowed: false,
      failed: false,
      filter: 'MaxReservationSizeFilter',
      message: 'The lease reserves up to 2 of physical:host; the most allowed for any lease is 1.',
    });
    expect(await ask('physical:host:1, virtual:floatingip:1', createGpuAndFloatingIp())).toMatchObject(
      ALLOWED,
    );
    expect(await ask('physical:host:1, virtual:floatingip:0', createGpuAndFloatingIp())).toMatchObject(
      rejectedWith('The lease reserves up to 1 of virtual:floatingip; the most allowed for any lease is 0.'),
    );
  });

  it.each([
    'physical:host',
    'virtual:instance',
    'flavor:instance',
    'virtual:floatingip',
    'network',
    'device',
  ])('counts %s by amount or max', async (type) => {
    for (const field of ['amount', 'max']) {
      const reserve = (count: number) => [{ resource_type: type, [field]: count }];
      expect(await create(`${type}:3`, reserve(3)), field).toMatchObject(ALLOWED);
      expect(await create(`${type}:3`, reserve(4)), field).toMatchObject(
        rejectedWith(`The lease reserves up to 4 of ${type}; the most allowed for any lease is 3.`),
      );
    }
  });

  it('counts the maximum that can be reserved, not the minimum or the allocations', async () => {
    const found = { min: 1, allocations: [{ id: '1' }] };
    expect(await create('physical:host:2', [hosts(3, found)])).toMatchObject(REJECTED);
    const many = { min: 9, allocations: Array.from({ length: 9 }, (_, id) => ({ id })) };
    expect(await create('physical:host:2', [hosts(2, many)])).toMatchObject(ALLOWED);
  });

  it('sums the reservations of a type, but not of different types', async () => {
    const both = [hosts(2), of('virtual:floatingip', 5), hosts(1)];
    expect(await create('physical:host:3, virtual:floatingip:5', both)).toMatchObject(ALLOWED);
    expect(await create('physical:host:2, virtual:floatingip:5', both)).toMatchObject(
      rejectedWith('The lease reserves up to 3 of physical:host; the most allowed for any lease is 2.'),
    );
    expect(await create('physical:host:3, virtual:floatingip:4', both)).toMatchObject(
      rejectedWith('The lease reserves up to 5 of virtual:floatingip; the most allowed for any lease is 4.'),
    );
  });

  it('counts the larger value if a reservation has both max and amount', async () => {
    for (const more of [hosts(2, { amount: 5 }), hosts(5, { amount: 2 }), hosts('5', { amount: 2 })]) {
      expect(await create('physical:host:5', [more])).toMatchObject(ALLOWED);
      expect(await create('physical:host:4', [more])).toMatchObject(
        rejectedWith(expect.stringContaining('up to 5 of physical:host')),
      );
    }
    expect(await create('physical:host:2', [hosts(2, { amount: null })])).toMatchObject(ALLOWED);
    expect(await create('physical:host:1', [hosts(null, { amount: 2 })])).toMatchObject(REJECTED);
  });

  it('reads texts as numbers', async () => {
    for (const two of ['2', '02', ' 2 ']) {
      expect(await create('physical:host:4', [hosts(two), hosts(two)]), two).toMatchObject(ALLOWED);
      expect(await create('physical:host:3', [hosts(two), hosts(two)]), two).toMatchObject(
        rejectedWith(expect.stringContaining('up to 4 of')),
      );
    }
  });

  it('counts a network without an amount as one', async () => {
    const networks = [{ resource_type: 'network' }, { resource_type: 'network', amount: null }];
    expect(await create('network:2', networks)).toMatchObject(ALLOWED);
    expect(await create('network:1', networks)).toMatchObject(
      rejectedWith('The lease reserves up to 2 of network; the most allowed for any lease is 1.'),
    );
    expect(await create('network:2', [of('network', 3)])).toMatchObject(REJECTED);
  });

  it.each([
    ['nothing', undefined],
    ['null', null],
  ])('rejects a reservation of another type with %s as its size, and names its place', async (_, size) => {
    for (const type of ['physical:host']) {
      expect(
        await create('physical:host:1', [hosts(1), { resource_type: type, max: size, amount: size }]),
        type,
      ).toMatchObject(
        rejectedWith(
          "The size of the lease can't be told: reservations.1: expected max or amount as a whole number, 0 or more.",
        ),
      );
    }
  });

  it.each([
    ['negative', -1],
    ['a negative text', '-1'],
    ['a fraction', 1.5],
    ['a fraction as text', '1.5'],
    ['NaN', Number.NaN],
    ['NaN as text', 'NaN'],
    ['infinite', Number.POSITIVE_INFINITY],
    ['too large for an exact number', 2 ** 53],
    ['a huge text', '9007199254740993'],
    ['a text of a thousand digits', '9'.repeat(1000)],
    ['an exponent', '1e3'],
    ['hexadecimal', '0x10'],
    ['an empty text', ''],
    ['words', 'two'],
    ['true', true],
    ['a list', [1]],
    ['an object', { valueOf: 1 }],
  ])('rejects a count that is %s, whatever the other count is', async (_, count) => {
    const mistake =
      "The size of the lease can't be told: reservations.0: expected max or amount as a whole number, 0 or more.";
    const enforcement = await load(['max_reservation_size = physical:host:100, network:100']);
    for (const reservation of [hosts(count), hosts(count, { amount: 1 }), hosts(1, { amount: count })]) {
      expect(await enforcement.checkCreate(reserving([reservation]))).toMatchObject(rejectedWith(mistake));
    }
    expect(await enforcement.checkCreate(reserving([of('network', count)]))).toMatchObject(
      rejectedWith(mistake),
    );
  });

  it('rejects sums that are too large for an exact number, without failing', async () => {
    const most = Number.MAX_SAFE_INTEGER;
    expect(await create(`physical:host:${most}`, [hosts(most)])).toMatchObject(ALLOWED);
    expect(await create(`physical:host:${most}`, [hosts(most), hosts(most)])).toMatchObject(REJECTED);
  });

  it('allows only an amount of 0 with the limit 0', async () => {
    expect(await create('physical:host:0', [hosts(1)])).toMatchObject(REJECTED);
    expect(await create('physical:host:0', [hosts(0)])).toMatchObject(ALLOWED);
    expect(await create('physical:host:0', [])).toMatchObject(ALLOWED);
  });

  it('allows leases without reservations', async () => {
    for (const none of [[], null, undefined]) {
      expect(await create('physical:host:0', none)).toMatchObject(ALLOWED);
    }
  });

  it('does not limit types that are not listed, types with -1, or any type by default', async () => {
    expect(await create('physical:host:1', [of('virtual:instance', 1e6)])).toMatchObject(ALLOWED);
    expect(await create('physical:host:-1', [hosts(1e6)])).toMatchObject(ALLOWED);
    expect(await (await load([])).checkCreate(reserving([hosts(1e6)]))).toMatchObject(ALLOWED);
  });

  it('compares types exactly, with case and spaces', async () => {
    const others = ['physical:hosts', 'Physical:Host', 'physical', 'host', ':host', 'physical:host '];
    const reservations = others.map((type) => of(type, 9));
    expect(await create('physical:host:1', reservations)).toMatchObject(ALLOWED);
  });

  it('accepts types that are property names of JavaScript objects', async () => {
    for (const type of ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'mistake']) {
      const decision = await create('physical:host:1', [of(type, 9), hosts(1)]);
      expect(decision, type).toMatchObject(ALLOWED);
      expect(await create('physical:host:1', [of(type, 9), hosts(2)]), type).toMatchObject(REJECTED);
    }
    expect(await create('constructor:1', [of('constructor', 2)])).toMatchObject(REJECTED);
    expect(await create('constructor:1', [of('constructor', 1)])).toMatchObject(ALLOWED);
  });
});
