/** Spans of requests, with the SDK of OpenTelemetry in this process. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { valuesOnly } from '../support/files.ts';
import { newLedger } from '../support/ledgers.ts';
import { type PolicyServer, policyServer } from '../support/policy-server.ts';
import { openSpans, spansSince, withRecordedSpans } from '../support/recorded-spans.ts';
import { createLasting } from '../support/requests.ts';

let runServiceOn: typeof import('../support/running-service.ts').runServiceOn;
let endTracing: typeof import('../../src/base/tracing.ts').endTracing;

withRecordedSpans(async () => {
  ({ runServiceOn } = await import('../support/running-service.ts'));
  ({ endTracing } = await import('../../src/base/tracing.ts'));
});

/** A service that asks another one, and its ledger. */
async function asking({ url }: PolicyServer, service: Readonly<Record<string, unknown>> = {}) {
  const running = await runServiceOn(
    valuesOnly({
      enforcement: {
        enabled_filters: ['ExternalServiceFilter', 'MaxLeasesFilter'],
        external_service_base_endpoint: url,
        max_leases_per_project: 5,
      },
      ledger: { connection: await newLedger() },
      service: { port: 0, ...service },
    }),
  );
  spansSince();
  return running;
}

/** As the service begins to answer, and never does. */
async function hanging() {
  const server = await policyServer(() => {});
  return { server, called: () => expect.poll(() => server.requests.length).toBe(1) };
}

const allEnded = () => expect.poll(openSpans).toBe(0);
const shown = () => spansSince().map(({ name, attributes }) => [name, attributes['error.type']]);

describe('the spans of a request', () => {
  it('end when the client goes', async () => {
    const { server, called } = await hanging();
    const { port } = await asking(server);
    const body = JSON.stringify(createLasting(60));
    const client = connect(port, '127.0.0.1');
    client.write(
      `POST /check-create HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    await called();
    client.destroy();
    await once(client, 'close');
    const isAborted = () =>
      spansSince().some(
        ({ name, attributes }) => name === 'POST /check-create' && attributes['error.type'] === 'aborted',
      );
    await expect.poll(isAborted).toBe(true);
    server.server.closeAllConnections();
    await allEnded();
  });

  it('end when the time is over', async () => {
    const { server } = await hanging();
    const { post } = await asking(server, { deadline: 1 });
    expect((await post('/check-create', createLasting(60))).status).toBe(403);
    await allEnded();
    const ended = shown();
    expect(ended).toContainEqual(['filter ExternalServiceFilter', '_OTHER']);
    expect(ended).toContainEqual(['POST /check-create', undefined]);
    expect(ended.find(([name]) => name === 'POST')?.[1]).toMatch(/^(aborted|timeout)$/);
  });

  it('end with the service', async () => {
    const { server, called } = await hanging();
    const { post, service } = await asking(server, { shutdown_grace: 1 });
    const answered = post('/check-create', createLasting(60)).catch(() => 'broken off');
    await called();
    await service.close();
    await endTracing(1);
    expect(openSpans()).toBe(0);
    expect(shown()).toEqual([
      ['POST /check-create', 'aborted'],
      ['filter ExternalServiceFilter', 'stopped'],
      ['POST', 'stopped'],
    ]);
    server.server.closeAllConnections();
    await answered;
    expect(shown()).toEqual([]);
  });
});
