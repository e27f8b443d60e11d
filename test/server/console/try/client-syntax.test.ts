import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  leaseCommand,
  quoted,
  type RequestedLease,
  reservationText,
  sentReservation,
} from '../../../../src/server/console/try/client-syntax.ts';

const asked = (
  reservations: RequestedLease['reservations'],
  more: Partial<RequestedLease> = {},
): RequestedLease => ({
  name: 'run',
  start: '2026-12-01 09:00',
  end: '2026-12-02 09:00',
  reservations,
  ...more,
});

describe('the command for a lease', () => {
  it('names dates, reservations and the lease, each as one word of the shell', () => {
    const hosts = [
      ['resource_type', 'physical:host'],
      ['min', '1'],
      ['max', '2'],
      ['resource_properties', '["==","$gpu","A100"]'],
    ] as const;
    expect(leaseCommand(asked([hosts], { name: "it's mine" }))).toBe(
      [
        'openstack reservation lease create',
        "--start-date '2026-12-01 09:00'",
        "--end-date '2026-12-02 09:00'",
        `--reservation 'resource_type=physical:host,min=1,max=2,resource_properties=["==","$gpu","A100"]'`,
        "'it'\\''s mine'",
      ].join(' \\\n  '),
    );
  });

  it('leaves the start out for a lease that starts now, and keeps a name with a dash from being an option', () => {
    const ips = [
      ['resource_type', 'virtual:floatingip'],
      ['amount', '1'],
      ['network_id', 'n'],
    ] as const;
    const command = leaseCommand(asked([ips], { start: undefined, name: '--help' }));
    expect(command).not.toContain('--start-date');
    expect(command?.endsWith(' -- --help')).toBe(true);
  });

  it('is not given for what the client cannot ask for', () => {
    // The client breaks at all types but four.
    expect(leaseCommand(asked([[['resource_type', 'network']]]))).toBeUndefined();
    expect(leaseCommand(asked([]))).toBeUndefined();
    // A value that reads like another key.
    const sly = [
      ['resource_type', 'flavor:instance'],
      ['amount', '1'],
      ['flavor_id', 'small,amount=9'],
    ] as const;
    expect(sentReservation(reservationText(sly))).toBeUndefined();
    expect(leaseCommand(asked([sly]))).toBeUndefined();
    const other = [
      ['resource_type', 'flavor:instance'],
      ['amount', '1'],
      ['flavor_id', 'physical:host'],
    ] as const;
    expect(leaseCommand(asked([other]))).toBeUndefined();
  });

  it('quotes any word so that a shell reads it as it is', () => {
    fc.assert(
      fc.property(fc.string(), (word) => {
        const text = quoted(word);
        const read = text.startsWith("'") ? text.slice(1, -1).replaceAll(`'\\''`, "'") : text;
        expect(read).toBe(word);
        expect(/^'(?:[^']|'\\'')*'$/.test(text) || /^[\w.:=,/+-]+$/.test(text)).toBe(true);
      }),
    );
  });
});

describe('what the client sends', () => {
  it('has whole numbers as numbers, lists as lists, and the values of what is left out', () => {
    expect(sentReservation('resource_type=physical:host,min=1,max=2')).toEqual({
      resource_type: 'physical:host',
      min: 1,
      max: 2,
      hypervisor_properties: '',
      resource_properties: '',
    });
    expect(
      sentReservation('resource_type=virtual:floatingip,network_id=n,required_floatingips=["203.0.113.7"]'),
    ).toEqual({
      resource_type: 'virtual:floatingip',
      network_id: 'n',
      amount: 1,
      required_floatingips: ['203.0.113.7'],
    });
    expect(sentReservation('resource_type=flavor:instance,flavor_id=007,amount=2')).toMatchObject({
      flavor_id: '007',
      amount: 2,
      affinity: 'None',
    });
  });

  it('is nothing where the client refuses: a key twice, a key that it does not know, a list that is none', () => {
    expect(sentReservation('resource_type=physical:host,min=1,min=2,max=3')).toBeUndefined();
    expect(sentReservation('size=1,resource_type=physical:host')).toBeUndefined();
    expect(sentReservation('resource_type=virtual:floatingip,required_floatingips=[')).toBeUndefined();
    expect(sentReservation('resource_type=network')).toBeUndefined();
  });
});
