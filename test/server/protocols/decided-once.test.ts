import { describe, expect, it, vi } from 'vitest';
import { capturedText } from '../../support/requests.ts';
import { type RunningService, runService } from '../../support/running-service.ts';

const FITS = capturedText('check-create-physical-host.json');
const NINE_DAYS = capturedText('check-create-gpu-and-floating-ip.json');
const END = capturedText('on-end-active.json');
const PATIENT = { timeout: 120_000 };
const ID = { 'X-Openstack-Request-Id': 'req-0d5b5d8e-1f4f-4f6e-9a76-00c0ffee0001' };

/** Every kind of answer: what is sent, and whether it is decided. */
const CASES: readonly [what: string, path: string, body: string, decided: boolean][] = [
  ['a lease that fits', '/check-create', FITS, true],
  ['a lease that fits, at /v1', '/v1/check-create', FITS, true],
  ['a lease that is too long', '/check-create', NINE_DAYS, true],
  ['an end', '/on-end', END, true],
  ['a commit', '/commit-create', FITS, true],
  ['no body', '/check-create', '', false],
  ['half a body', '/check-create', FITS.slice(0, -9), false],
  ['another form', '/check-create', '{"context":{},"lease":[]}', false],
  ['a list', '/check-create', '[]', false],
  [
    'a lease without an end',
    '/check-create',
    '{"context":{"user_id":"u","project_id":"p"},"lease":{}}',
    false,
  ],
  ['a name of a prototype', '/check-create', '{"__proto__":{"lease":1},"context":null}', false],
];

/** The same path in another spelling. */
const withQuery = (path: string) => `${path}?`;

async function counted({ request }: RunningService, name: string): Promise<number> {
  const { text } = await request('/metrics');
  return text
    .split('\n')
    .filter((line) => line.startsWith(`blazar_enforcement_${name}{`))
    .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

describe('a request to one of Blazar’s endpoints', () => {
  it.each(CASES)('is decided once, with a query or without: %s', async (_, path, body, decided) => {
    const service = await runService();
    const whole = async (at: string) => {
      const { status, text, headers } = await service.post(at, body, ID);
      return { status, text, headers: Object.fromEntries([...headers].filter(([name]) => name !== 'date')) };
    };
    const answer = await whole(path);
    expect(await counted(service, 'decisions_total')).toBe(decided ? 1 : 0);
    expect(await whole(withQuery(path))).toEqual(answer);
    expect(await counted(service, 'decisions_total')).toBe(decided ? 2 : 0);
    const { text: metrics } = await service.request('/metrics');
    expect(metrics).toContain(`http_requests_total{path="${path}",status="${answer.status}"} 2`);
  });

  it('that is cut off is not decided, and is forgotten', async () => {
    const service = await runService();
    const head = `POST /check-create HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${FITS.length}\r\n\r\n`;
    const { connect } = await import('node:net');
    const socket = connect(service.port, '127.0.0.1');
    socket.write(head + FITS.slice(0, 100), () => socket.destroy());
    await vi.waitFor(async () => {
      const { text } = await service.request('/metrics');
      expect(text).toContain('http_requests_total{path="/check-create",status="400"} 1');
    }, PATIENT);
    expect(await counted(service, 'decisions_total')).toBe(0);
    // Waits for every request.
    await service.service.close();
  });
});
