import { describe, expect, it } from 'vitest';
import type { UsageEnforcement } from '../../src/index.ts';
import { type Outcome, RAW_ANSWERS } from '../support/almost-http.ts';
import { ALLOWED } from '../support/decisions.ts';
import { createPhysicalHost, endActive, updateExtend } from '../support/requests.ts';
import { startTcpService } from '../support/services.ts';
import { loadValues } from './loaded.ts';

/** A service that answers every request with these bytes, and then closes the connection unless `stay` is set. */
function answering(bytes: Buffer, { stay = false } = {}) {
  return startTcpService((socket) => {
    socket.on('data', () => {
      socket.write(bytes);
      if (!stay) {
        socket.end();
      }
    });
  });
}

async function asking(url: string) {
  const { enforcement, logger } = await loadValues({
    enabled_filters: ['ExternalServiceFilter'],
    external_service_base_endpoint: new URL('/', url).href,
    external_service_breaker_failures: 0,
    external_service_connect_retries: 0,
  });
  return { enforcement, warnings: () => logger.lines.filter(({ level }) => level === 'warn') };
}

async function outcome(enforcement: UsageEnforcement): Promise<Outcome> {
  const decision = await enforcement.checkCreate(createPhysicalHost());
  if (decision.allowed) {
    return 'yes';
  }
  return decision.failed ? 'broken' : `no: ${decision.message}`;
}

describe('an answer of an external service', () => {
  it.each(RAW_ANSWERS)('is read: $name', async ({ bytes, ours }) => {
    const { url } = await answering(bytes);
    const { enforcement } = await asking(url);
    expect(await outcome(enforcement)).toBe(ours);
  });

  it('that Blazar accepts is refused only if its bytes are ambiguous', () => {
    const stricter = RAW_ANSWERS.filter(({ blazar, ours }) => blazar === 'yes' && ours !== 'yes');
    expect(stricter.map(({ name }) => name)).toEqual([
      '204 with a length and chunks',
      '204 with a length that is no number',
      '204 with lines that end in LF alone',
      '204 behind 100 Continue',
    ]);
  });
});

describe('a 204 with a body', () => {
  const BODY = '{"message":"Account has sufficient resources"}';
  const WITH_LENGTH = Buffer.from(`HTTP/1.1 204 No Content\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`);

  it('allows creates and updates, acknowledges ends, and logs one warning', async () => {
    const service = await answering(WITH_LENGTH, { stay: true });
    const { enforcement, warnings } = await asking(service.url);
    expect(await enforcement.checkCreate(createPhysicalHost())).toMatchObject(ALLOWED);
    expect(await enforcement.checkUpdate(updateExtend())).toMatchObject(ALLOWED);
    expect(await enforcement.onEnd(endActive())).toMatchObject({ failed: false });
    expect(await enforcement.checkCreate(createPhysicalHost())).toMatchObject(ALLOWED);
    expect(warnings()).toEqual([
      {
        level: 'warn',
        fields: { filter: 'ExternalServiceFilter', service: new URL(service.url).origin },
        message: expect.stringContaining('sends a body with a 204'),
      },
    ]);
  });

  it('logs no warning if there is no body', async () => {
    const { url } = await answering(Buffer.from('HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n'));
    const { enforcement, warnings } = await asking(url);
    expect(await enforcement.checkCreate(createPhysicalHost())).toMatchObject(ALLOWED);
    expect(warnings()).toEqual([]);
  });
});
