/** A service with little memory, and requests that are as dear as their size allows: it lives on, and answers the others. */
import { describe, expect, it } from 'vitest';
import { confFile } from '../support/files.ts';
import { serve } from './serving.ts';

const SIZE = 8_388_000;
const DATES = '"start_date":"2030-01-01 09:00","end_date":"2030-01-01 10:00"';
const filled = (text: string, unit: string) =>
  text.replace('§', unit.repeat(Math.floor((SIZE - text.length) / Buffer.byteLength(unit))));
const lease = (members: string) =>
  `{"context":{"user_id":"u","project_id":"p"},"lease":{${DATES},${members}}}`;

/** All of them as long as a body may be. */
const DEAR: readonly (readonly [string, string])[] = [
  ['numbers as reservations', filled(lease('"reservations":[§1]'), '1,')],
  ['lists in lists', filled(lease('"x":§'), '[')],
  ['empty objects', filled(lease('"x":[§{}]'), '{},')],
  ['a long name', filled(lease('"name":"§"'), '😀')],
  ['a long attribute', filled(lease('"x":"§"'), 'ä')],
  ['blanks', filled(lease('"x":1§'), ' ')],
  [
    'allocations',
    filled(lease('"reservations":[{"resource_type":"physical:host","max":1,"allocations":[§{}]}]'), '{},'),
  ],
  ['no JSON', '['.repeat(SIZE)],
  ['different names', `{${Array.from({ length: 600_000 }, (_, index) => `"k${index}":1`).join(',')}}`],
];

describe('serve with a heap of 96 MB', () => {
  it('outlives every dear request, and answers the others meanwhile', async () => {
    const conf = confFile(
      '[enforcement]\nenabled_filters = MaxLeaseDurationFilter\nmax_lease_duration = 172800\n[service]\nport = 0\ndeadline = 600\n',
    );
    const env = { NODE_OPTIONS: '--max-old-space-size=96' };
    const { process, post, statusFor } = await serve(['--config-file', conf], { env });
    const statusOf = async (body: string) => (await post('/check-create', body)).status;
    for (const [what, body] of DEAR) {
      const statuses = await Promise.all([statusOf(body), statusFor(60)]);
      expect({ what, statuses }).toEqual({ what, statuses: [expect.toBeOneOf([204, 400]), 204] });
    }
    // Those that are kept for people keep nothing but what is shown of them.
    const long = lease(`"name":"${'n'.repeat(65_000)}","x":"${'y'.repeat(4_000_000)}"`);
    for (let time = 0; time < 60; time += 1) {
      expect(await statusOf(long)).toBe(204);
    }
    expect(process.exitCode).toBeNull();
  });
});
