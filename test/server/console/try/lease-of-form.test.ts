import { describe, expect, it } from 'vitest';
import { type Lease, toInstant } from '../../../../src/index.ts';
import {
  comparisonName,
  fieldName,
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
    ...{ project: 'climate', user: 'alice', name: 'run', start: '2026-12-01T09:00', end: '2026-12-02T09:00' },
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

describe('the form of "Try it"', () => {
  it('becomes the lease that the client would ask for', () => {
    const lease = leaseFor({
      [fieldName(0, 'max')]: '4',
      [comparisonName(0, 0, 'name')]: 'gpu',
      [comparisonName(0, 0, 'value')]: 'A100',
      [comparisonName(0, 1, 'name')]: '$nvme',
      [comparisonName(0, 1, 'operator')]: '>=',
      [comparisonName(0, 1, 'value')]: '2',
    });
    expect(lease).toEqual({
      ...{ name: 'run', start_date: '2026-12-01 09:00', end_date: '2026-12-02 09:00' },
      reservations: [
        {
          ...{ resource_type: 'physical:host', min: 1, max: 4, hypervisor_properties: '' },
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
    const more = { [fieldName(0, 'more')]: '{"network_name":"lab"}', [fieldName(0, 'amount')]: '' };
    expect(leaseFor(more, 'network')).toMatchObject({
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
    [{ [fieldName(0, 'min')]: '0' }, 'r0_min'],
    [{ [fieldName(0, 'min')]: '-1' }, 'r0_min'],
    [{ [fieldName(0, 'min')]: '3', [fieldName(0, 'max')]: '2' }, 'r0_max'],
    [{ [fieldName(0, 'max')]: '1e9' }, 'r0_max'],
    [{ [fieldName(0, 'properties')]: '["or", "x"]' }, 'r0_properties'],
    [{ [fieldName(0, 'properties')]: `["==","$x","${'y'.repeat(5000)}"]` }, 'r0_properties'],
    [{ [comparisonName(0, 0, 'name')]: 'g pu', [comparisonName(0, 0, 'value')]: '1' }, 'r0_p0_name'],
    [{ [comparisonName(0, 2, 'name')]: 'gpu' }, 'r0_p2_value'],
    [
      {
        [comparisonName(0, 0, 'name')]: 'gpu',
        [comparisonName(0, 0, 'value')]: '1',
        [fieldName(0, 'properties')]: '[]',
      },
      'r0_properties',
    ],
    [{ [fieldName(0, 'flavor_id')]: '' }, 'r0_flavor_id', 'flavor:instance'],
    [
      { [fieldName(0, 'affinity')]: 'Perhaps', [fieldName(0, 'flavor_id')]: 'f' },
      'r0_affinity',
      'flavor:instance',
    ],
    [
      { [fieldName(0, 'addresses')]: 'everywhere', [fieldName(0, 'network_id')]: 'n' },
      'r0_addresses',
      'virtual:floatingip',
    ],
    [{ [fieldName(0, 'more')]: '[1]' }, 'r0_more', 'network'],
  ])('says at the field what is wrong: %j', ([fields, field, type]) => {
    expect(Object.keys(mistakesOf(fields, type))).toEqual([field]);
  });

  it('asks for a reservation where there is none', () => {
    expect(mistakesOf({ [fieldName(0, 'type')]: 'none' })).toHaveProperty('add');
  });

  it('fills itself with a lease that was suggested, and means the same lease then', () => {
    for (const type of TYPES) {
      const fields = {
        [fieldName(0, 'flavor_id')]: 'f1',
        [fieldName(0, 'network_id')]: 'n1',
        [fieldName(0, 'vcpus')]: '2',
        [fieldName(0, 'memory_mb')]: '4096',
        [fieldName(0, 'disk_gb')]: '0',
        [fieldName(0, 'affinity')]: 'False',
        [fieldName(0, 'addresses')]: '203.0.113.7, 203.0.113.8',
        [comparisonName(0, 0, 'name')]: 'gpu',
        [comparisonName(0, 0, 'value')]: 'A100',
      };
      const first = leaseForm(fields, type);
      const wanted = leaseOf(first, NOW);
      expect(wanted).not.toHaveProperty('mistakes');
      const { lease } = wanted as { lease: Lease };
      const again = leaseOf(formOfLease(lease, first, lease), NOW);
      expect(again).toMatchObject({ lease });
    }
  });

  it('keeps "now" as now, and rounds times so that a lease gets no longer', () => {
    const asked = { start_date: '2026-11-22 11:00', end_date: '2026-12-02 09:00' };
    const now = leaseForm({ start: '' });
    expect(formOfLease({ ...asked, end_date: '2026-12-01T09:00:59Z' }, now, asked)).toMatchObject({
      ...{ start: '', end: '2026-12-01T09:00' },
    });
    expect(formOfLease({ ...asked, start_date: '2026-11-23T11:00:01Z' }, now, asked)).toMatchObject({
      start: '2026-11-23T11:01',
    });
  });
});
