import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  AUTOSTOP_OFF,
  autostopOf,
  autostopsOf,
  durationMinutes,
  durationSeconds,
  PolicyRejected,
} from '../../../src/skypilot/index.ts';

const none = { down: false, waitFor: undefined, hook: undefined };

describe('autostopOf', () => {
  it.for([
    [undefined, undefined],
    [null, undefined],
    [true, { ...none, idleMinutes: 0 }],
    [false, { ...none, idleMinutes: AUTOSTOP_OFF }],
    [-1, { ...none, idleMinutes: AUTOSTOP_OFF }],
    ['1h', { ...none, idleMinutes: 60 }],
    [{}, { ...none, idleMinutes: 0 }],
    [{ down: true }, { ...none, idleMinutes: 0, down: true }],
    [{ idle_minutes: -1 }, { ...none, idleMinutes: AUTOSTOP_OFF }],
    [
      { idle_minutes: 5, wait_for: 'JOBS', hook: 'sync', hook_timeout: 9 },
      { idleMinutes: 5, down: false, waitFor: 'jobs', hook: 'sync' },
    ],
  ] as const)('reads %j', ([autostop, expected]) => {
    expect(autostopOf(autostop)).toEqual(expected);
  });

  it.for([
    ...['', 'soon', '600s', '1.5h', '10 m', [10], [], '-5'],
    ...[{ idle_minutes: null }, { idle_minutes: '5m' }, { idle_minutes: [] }, { idle_minutes: {} }],
    ...[{ down: 'yes' }, { down: null }, { wait_for: 'ssh' }, { wait_for: 1 }, { hook: 5 }],
  ])('rejects %j', (autostop) => {
    expect(() => autostopOf(autostop)).toThrow(PolicyRejected);
  });
});

it('autostopsOf takes the command line where an alternative says nothing', () => {
  const requestOptions = { clusterName: null, idleMinutesToAutostop: 7, down: false, dryrun: false };
  const task = { resources: { any_of: [{ autostop: '1h' }, {}, { autostop: false }] } };
  expect(autostopsOf({ task, requestOptions })).toEqual([60, 7, AUTOSTOP_OFF]);
  expect(autostopsOf({ task, requestOptions: null })).toEqual([60, undefined, AUTOSTOP_OFF]);
});

describe('a duration', () => {
  it.for([
    ['10', 10, 10],
    [10, 10, 10],
    [10n, 10, 10],
    ['0', 0, 0],
    ['10m', 10, 600],
    ['1H', 60, 3600],
    ['2d', 2880, 172_800],
    ['1w', 10_080, 604_800],
    ['30s', undefined, 30],
  ] as const)('is read: %s', ([duration, minutes, seconds]) => {
    expect([durationMinutes(duration), durationSeconds(duration)]).toEqual([minutes, seconds]);
  });

  it.for([
    ...['', ' ', '-1', '1.5h', '10 m', ' 10', '10m\n', '1e3m', '１０', '10x', 'm', '1h30m', '9'.repeat(16)],
    ...[-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, null, undefined, true, {}, [10]],
  ])('is none: %j', (text) => {
    expect([durationMinutes(text), durationSeconds(text)]).toEqual([undefined, undefined]);
  });

  it('has sixty seconds for each minute, whatever its unit', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 10 ** 9 }), fc.constantFrom(...'mhdwMHDW'), (amount, unit) => {
        expect(durationSeconds(`${amount}${unit}`)).toBe(
          60 * (durationMinutes(`${amount}${unit}`) ?? Number.NaN),
        );
      }),
    );
  });
});
