import { inspect, isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readOnly, shownBy, withoutViews } from '../../src/lease/read-only.ts';
import { createPhysicalHost } from '../support/requests.ts';

const json = fc.jsonValue().map((value) => JSON.parse(JSON.stringify(value)) as unknown);

describe('a read-only view', () => {
  it('shows the content of the value, at any depth', () => {
    const request = createPhysicalHost();
    const view = readOnly(request);
    expect(view.lease.reservations?.[0]?.allocations?.[1]?.gpu).toBe('False');
    expect(view).toEqual(request);
    expect(Object.keys(view.lease)).toEqual(Object.keys(request.lease));
    expect('lease' in view && !('nothing' in view)).toBe(true);
    expect(Array.isArray(view.lease.reservations)).toBe(true);
    expect(view.lease.reservations?.map(({ max }) => max)).toEqual([2]);
    expect([...(view.lease.reservations ?? [])]).toHaveLength(1);
    expect(isDeepStrictEqual({ ...view.lease }, request.lease)).toBe(true);
    expect(inspect(view)).not.toBe('');
  });

  it('returns the same view of the same part every time', () => {
    const view = readOnly(createPhysicalHost());
    expect(view.lease).toBe(view.lease);
    expect(view.lease.reservations?.[0]).toBe(view.lease.reservations?.[0]);
  });

  it('refuses every way to write', () => {
    const value = { list: [3, 1, 2], part: { a: 1 } };
    const view = readOnly(value);
    for (const write of [
      () => Object.assign(view, { x: 1 }),
      () => Object.assign(view.part, { a: 2 }),
      () => view.list.push(4),
      () => view.list.sort(),
      () => view.list.splice(0, 1),
      () => Reflect.deleteProperty(view, 'part'),
      () => Object.defineProperty(view.part, 'a', { value: 2 }),
      () => Object.setPrototypeOf(view, null),
      () => Object.freeze(view),
      () => {
        view.list.length = 0;
      },
    ]) {
      expect(write).toThrow(/in place/);
    }
    expect(value).toEqual({ list: [3, 1, 2], part: { a: 1 } });
  });

  it('shows a Date as a copy, whose setters change nothing in the value', () => {
    const value = { part: { end_date: new Date('2026-12-02T09:00:00Z') } };
    readOnly(value).part.end_date.setFullYear(2036);
    expect(readOnly(value).part.end_date).toEqual(new Date('2026-12-02T09:00:00Z'));
  });

  it('returns texts and instances of classes unchanged', () => {
    const pattern = /a/;
    expect(readOnly({ pattern }).pattern).toBe(pattern);
    expect(readOnly('text')).toBe('text');
    expect(readOnly(null)).toBeNull();
  });

  it('shows __proto__ as a normal attribute', () => {
    const value = JSON.parse('{"__proto__": {"polluted": true}}') as Record<string, unknown>;
    const view = readOnly(value);
    expect(Object.keys(view)).toEqual(['__proto__']);
    expect(JSON.stringify(withoutViews({ ...view }))).toBe('{"__proto__":{"polluted":true}}');
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });
});

describe('shownBy', () => {
  it('returns the value behind a view, whichever views were made since', () => {
    const values = Array.from({ length: 4 }, (_, index) => ({ index, part: { index } }));
    const views = values.map((value) => readOnly(value));
    for (const [index, view] of views.entries()) {
      expect(shownBy(view)).toBe(values[index]);
      expect(shownBy(view.part)).toBe(values[index]?.part);
    }
  });
});

describe('withoutViews', () => {
  it('returns the value behind a view, not a copy', () => {
    const request = createPhysicalHost();
    expect(withoutViews(readOnly(request))).toBe(request);
    expect(withoutViews(readOnly(request).lease)).toBe(request.lease);
  });

  it('replaces the views in a new value and keeps unchanged parts', () => {
    const { lease } = createPhysicalHost();
    const view = readOnly(lease);
    const extended = (one: typeof lease) => ({
      ...one,
      name: 'new',
      reservations: [...(one.reservations ?? []), { max: 1 }],
    });
    const changed = withoutViews(extended(view));
    expect(changed).toEqual(extended(lease));
    expect(changed.reservations?.[0]).toBe(lease.reservations?.[0]);
    expect(structuredClone(changed)).toEqual(changed);
  });

  it('returns equal values, however views are spread and nested', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), json), (value) => {
        const view = readOnly(value);
        expect(withoutViews({ outer: { ...view }, list: [view, ...Object.values(view)] })).toEqual({
          outer: { ...value },
          list: [value, ...Object.values(value)],
        });
      }),
    );
  });

  it('terminates for a value that contains itself', () => {
    const round: Record<string, unknown> = { part: readOnly({ a: 1 }) };
    round.self = round;
    expect(withoutViews(round)).toMatchObject({ part: { a: 1 } });
  });
});
