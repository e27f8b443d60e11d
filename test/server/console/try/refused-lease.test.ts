/** "Try a lease" from a refusal, on a real service: what was asked for stands in the form. */
import { describe, expect, it } from 'vitest';
import { newLedgers } from '../../../support/ledgers.ts';
import { runServiceOf } from '../../../support/running-service.ts';
import { textOf } from '../visitor.ts';

const SECRET = 's3cret-0123456789abcdef';
const TOKEN = { 'X-Auth-Token': SECRET };
const newLedger = newLedgers();

const DATES = { start_date: '2036-12-01 09:00', end_date: '2036-12-11 09:00' };
const WISHES = [
  {
    resource_type: 'physical:host',
    min: 1,
    max: 3,
    hypervisor_properties: '[">=", "$vcpus", "16"]',
    resource_properties: '["and", ["==", "$gpu", "A100"], [">=", "$nvme", "2"]]',
  },
  {
    resource_type: 'virtual:instance',
    amount: 2,
    vcpus: 4,
    memory_mb: 8192,
    disk_gb: 0,
    affinity: true,
    resource_properties: '["or", ["==", "$a", "1"], ["==", "$b", "2"]]',
  },
  {
    resource_type: 'virtual:floatingip',
    amount: '2',
    network_id: 'ext',
    required_floatingips: ['203.0.113.7'],
  },
  { resource_type: 'flavor:instance', amount: 1, flavor_id: 'm1"<b>' },
];

async function refusing(stores: boolean) {
  const connection = await newLedger('sqlite');
  const values = {
    service: { port: 0, tokens: [SECRET], ...(stores && { decision_store: 'refused' }) },
    ...(stores && { ledger: { connection } }),
    enforcement: { enabled_filters: ['MaxLeaseDurationFilter'], max_lease_duration: 3600 },
  };
  const service = await runServiceOf(values);
  const refuse = async (reservations: readonly object[], id: string) => {
    const context = { user_id: 'meg', project_id: 'climate' };
    const lease = { ...DATES, name: 'too long', reservations };
    const headers = { ...TOKEN, 'X-Openstack-Request-Id': id };
    expect(await service.post('/check-create', { context, lease }, headers)).toMatchObject({ status: 403 });
  };
  const get = async (path: string) => (await fetch(service.url + path, { headers: TOKEN })).text();
  return { ...service, refuse, get };
}

const fields = (html: string) =>
  Object.fromEntries(
    [
      ...html.matchAll(/<(?:input|textarea)[^>]* name="([^"]+)"[^>]*?(?:value="([^"]*)"[^>]*>|>([^<]*)<)/g),
    ].map(([, name = '', value, text]) => [
      name,
      (value ?? text?.replace(/^\n/, '') ?? '').replaceAll('&quot;', '"').replaceAll('&lt;', '<'),
    ]),
  );

describe.each([true, false])('"Try a lease" from a refusal, with stored decisions: %s', (stores) => {
  it('fills in the whole lease', async () => {
    const { refuse, get } = await refusing(stores);
    const id = 'req-11111111-2222-4333-8444-555555555555';
    await refuse(WISHES, id);
    let link = '';
    await expect
      .poll(async () => {
        const page = await get(`/decisions/${id}`);
        link = /href="(\/try\?[^"]*)">Try this lease/.exec(page)?.[1]?.replaceAll('&amp;', '&') ?? '';
        return link;
      })
      .toContain(`decision=${id}`);
    const html = await get(link);
    expect(fields(html)).toMatchObject({
      project: 'climate',
      user: 'meg',
      name: 'too long',
      start: '2036-12-01T09:00',
      end: '2036-12-11T09:00',
      r0_type: 'physical:host',
      r0_min: '1',
      r0_max: '3',
      r0_hypervisor: '[">=", "$vcpus", "16"]',
      r0_p0_name: 'gpu',
      r0_p0_value: 'A100',
      r0_p1_name: 'nvme',
      r0_p1_value: '2',
      r0_properties: '',
      r1_type: 'virtual:instance',
      r1_amount: '2',
      r1_vcpus: '4',
      r1_memory_mb: '8192',
      r1_disk_gb: '0',
      r1_properties: '["or", ["==", "$a", "1"], ["==", "$b", "2"]]',
      r2_type: 'virtual:floatingip',
      r2_amount: '2',
      r2_network_id: 'ext',
      r2_addresses: '203.0.113.7',
      r3_type: 'flavor:instance',
      r3_amount: '1',
      r3_flavor_id: 'm1"<b>',
    });
    expect(html).toMatch(/<option value="True" selected/);
    expect(textOf(html)).not.toContain('refused lease');
  });

  it('says what it cannot fill in', async () => {
    const { refuse, get } = await refusing(stores);
    const ids = [1, 2, 3].map((one) => `req-11111111-2222-4333-8444-55555555555${one}`);
    await refuse(
      [{ ...WISHES[0], resource_properties: JSON.stringify(['==', '$x', 'x'.repeat(5000)]) }],
      ids[0] ?? '',
    );
    await refuse(
      Array.from({ length: 7 }, () => ({ ...WISHES[0], resource_properties: '' })),
      ids[1] ?? '',
    );
    const NOT_KEPT = 'The reservations of the refused lease were not kept: fill them in.';
    const seen = async (id = '') => textOf(await get(`/try?decision=${id}&name=mine`));
    await expect
      .poll(() => seen(ids[1]))
      .toContain('had 7 reservations; 2 of them do not fit into this form');
    for (const id of [
      ids[0],
      ids[2],
      '__proto__',
      encodeURIComponent('\ud800'.toWellFormed()),
      'x'.repeat(9999),
    ]) {
      expect(await seen(id)).toContain(NOT_KEPT);
    }
    expect(await seen(ids[1])).not.toContain('Reservation 6');
  });
});
