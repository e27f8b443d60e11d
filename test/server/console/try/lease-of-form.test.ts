import { describe, expect, it } from 'vitest';
import { type Lease, toInstant } from '../../../../src/index.ts';
import {
  formOfLease,
  type LeaseForm,
  leaseFormFields,
  newReservation,
  readLeaseForm,
} from '../../../../src/server/console/try/lease-form.ts';
import { leaseOf } from '../../../../src/server/console/try/lease-of-form.ts';

const TYPES = ['physical:host', 'virtual:instance', 'flavor:instance', 'virtual:floatingip', 'network'];
const NOW = toInstant('2026-11-22T11:00:42Z') ?? 0n;

/** A form for one host, with some fields as they are given. */
function leaseForm(fields: Record<string, string> = {}, type = 'physical:host'): LeaseForm {
  const plain: LeaseForm = {
    project: 'climate',
    user: 'alice',
    name: 'run',
    start: '2026-12-01T09:00',
    end: '2026-12-02T09:00',
    reservations: [newReservation(type)],
  };
  const form = new URLSearchParams(leaseFormFields(plain));
  for (const [name, value] of Object.entries(fields)) {
    form.set(name, value);
  }
  return readLeaseForm(form, TYPES);
}

const mistakesOf = (fields: Record<string, string>, type?: string) => {
  const lease = leaseOf(leaseForm(fields, type), NOW);
  return 'mistakes' in lease ? Object.fromEntries(lease.mistakes) : {};
};
const leaseFor = (fields: Record<string, string>, type?: string) => {
  const lease = leaseOf(leaseForm(fields, type), NOW);
  return 'lease' in lease ? lease.lease : Object.fromEntries(lease.mistakes);
};

describe('the form of "Try a lease"', () => {
  it('becomes the lease that the client would ask for', () => {
    const lease = leaseFor({
      r0_max: '4',
      r0_p0_name: 'gpu',
      r0_p0_value: 'A100',
      r0_p1_name: '$nvme',
      r0_p1_operator: '>=',
      r0_p1_value: '2',
    });
    expect(lease).toEqual({
      name: 'run',
      start_date: '2026-12-01 09:00',
      end_date: '2026-12-02 09:00',
      reservations: [
        {
          resource_type: 'physical:host',
          min: 1,
          max: 4,
          hypervisor_properties: '',
          resource_properties: '["and",["==","$gpu","A100"],[">=","$nvme","2"]]',
        },
      ],
    });
  });

  it('starts now where no start is given, to the minute', () => {
    const wanted = leaseOf(leaseForm({ start: '' }), NOW);
    expect(wanted).toMatchObject({
      lease: { start_date: '2026-11-22 11:00' },
      asked: { start: undefined },
    });
  });

  it('has further attributes of other plug-ins as they are', () => {
    expect(leaseFor({ r0_more: '{"network_name":"lab"}', r0_amount: '' }, 'network')).toMatchObject({
      reservations: [{ resource_type: 'network', network_name: 'lab' }],
    });
  });

  it.for<[Record<string, string>, string, string?]>([
    [{ project: '' }, 'project'],
    [{ user: 'a\u202eb' }, 'user'],
    [{ name: '' }, 'name'],
    [{ name: 'x'.repeat(81) }, 'name'],
    [{ start: 'tomorrow' }, 'start'],
    [{ start: '2026-12-01T09:00:30' }, 'start'],
    [{ end: '' }, 'end'],
    [{ end: '2026-12-01T09:00' }, 'end'],
    [{ r0_min: '0' }, 'r0_min'],
    [{ r0_min: '-1' }, 'r0_min'],
    [{ r0_min: '3', r0_max: '2' }, 'r0_max'],
    [{ r0_max: '1e9' }, 'r0_max'],
    [{ r0_properties: '["or", "x"]' }, 'r0_properties'],
    [{ r0_properties: `["==","$x","${'y'.repeat(5000)}"]` }, 'r0_properties'],
    [{ r0_p0_name: 'g pu', r0_p0_value: '1' }, 'r0_p0_name'],
    [{ r0_p1_name: 'gpu', r0_p1_operator: '=', r0_p1_value: '1' }, 'r0_p1_operator'],
    [{ r0_p2_name: 'gpu' }, 'r0_p2_value'],
    [{ r0_p0_name: 'gpu', r0_p0_value: '1', r0_properties: '[]' }, 'r0_properties'],
    [{ r0_flavor_id: '' }, 'r0_flavor_id', 'flavor:instance'],
    [{ r0_affinity: 'Perhaps', r0_flavor_id: 'f' }, 'r0_affinity', 'flavor:instance'],
    [{ r0_addresses: 'everywhere', r0_network_id: 'n' }, 'r0_addresses', 'virtual:floatingip'],
    [{ r0_more: '[1]' }, 'r0_more', 'network'],
  ])('says at the field what is wrong: %j', ([fields, field, type]) => {
    expect(Object.keys(mistakesOf(fields, type))).toEqual([field]);
  });

  it('asks for a reservation where there is none', () => {
    expect(mistakesOf({ r0_type: 'none' })).toHaveProperty('add');
  });

  it.for(TYPES)('fills itself with a lease that was suggested, and means the same lease then: %s', (type) => {
    const first = leaseForm(
      {
        r0_flavor_id: 'f1',
        r0_network_id: 'n1',
        r0_vcpus: '2',
        r0_memory_mb: '4096',
        r0_disk_gb: '0',
        r0_affinity: 'False',
        r0_addresses: '203.0.113.7, 203.0.113.8',
        r0_p0_name: 'gpu',
        r0_p0_value: 'A100',
      },
      type,
    );
    const wanted = leaseOf(first, NOW);
    expect(wanted).not.toHaveProperty('mistakes');
    const { lease } = wanted as { lease: Lease };
    expect(leaseOf(formOfLease(lease, first, lease), NOW)).toMatchObject({ lease });
  });

  it('keeps "now" as now, and rounds times so that a lease gets no longer', () => {
    const asked = { start_date: '2026-11-22 11:00', end_date: '2026-12-02 09:00' };
    const now = leaseForm({ start: '' });
    expect(formOfLease({ ...asked, end_date: '2026-12-01T09:00:59Z' }, now, asked)).toMatchObject({
      start: '',
      end: '2026-12-01T09:00',
    });
    expect(formOfLease({ ...asked, start_date: '2026-11-23T11:00:01Z' }, now, asked)).toMatchObject({
      start: '2026-11-23T11:01',
    });
  });
});
