import { once } from 'node:events';
import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { ConfigurationError } from '../../src/index.ts';
import { startService } from '../../src/server/service.ts';
import { captured } from '../support/command-in-process.ts';
import { filterFolder, filterSource } from '../support/filter-folder.ts';
import { recordingLogger } from '../support/logger.ts';
import { capturedText } from '../support/requests.ts';
import { runService } from '../support/running-service.ts';

const FITS = capturedText('check-create-physical-host.json');
const HAS_IPV6 = Object.values(networkInterfaces()).some((addresses) =>
  addresses?.some(({ address }) => address === '::1'),
);

const NOTHING = { enabled_filters: [] };

const start = (enforcement: Record<string, unknown>, service: Record<string, unknown> = {}) =>
  startService(
    { environment: {}, configFiles: [], values: { enforcement, service: { port: 0, ...service } } },
    { logger: recordingLogger() },
  );

/** A filter that notes in `heard` what it was asked and that it was closed, and answers after 300 ms. */
function slowFilter(): { folder: string; heard: string[] } {
  const heard: string[] = [];
  vi.stubGlobal('heard', heard);
  onTestFinished(() => void vi.unstubAllGlobals());
  const folder = filterFolder({
    'slow-filter.js': filterSource('SlowFilter', {
      create:
        "heard.push('asked'); return new Promise((go) => setTimeout(() => { heard.push('answered'); go(allow()); }, 300));",
      extra: "close() { heard.push('closed'); }",
    }),
  });
  return { folder, heard };
}

describe('startService', () => {
  it('listens on a free port of 127.0.0.1 where the port is 0', async () => {
    const { url } = await runService();
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d{4,5}$/);
  });

  it.skipIf(!HAS_IPV6)('prints an IPv6 address as a URL needs it', async () => {
    const service = await start(NOTHING, { host: '::1' });
    expect(service.url).toMatch(/^http:\/\/\[::1\]:\d+$/);
    expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
    await service.close();
  });

  it('returns the warnings of a configuration, and whether it requires a token', async () => {
    const open = await start(NOTHING);
    expect(open.warnings).toMatchObject([
      { severity: 'warning', message: expect.stringContaining('every lease') },
    ]);
    expect(open).toMatchObject({ tokenForLeases: false, authenticators: [{ title: 'Blazar', asks: [] }] });
    await open.close();
    const limited = { enabled_filters: ['MaxLeaseDurationFilter'], max_lease_duration: 3600 };
    const closed = await start(limited, { tokens: ['s3cret-0123456789abcdef'] });
    expect(closed).toMatchObject({
      warnings: [],
      tokenForLeases: true,
      authenticators: [{ title: 'Blazar', asks: ['one of [service] tokens, in the header X-Auth-Token'] }],
    });
    await closed.close();
  });

  it.each([
    ['pretty', /^\[[\d:.]+\] INFO: configuration reloaded\n {4}generation: 2\n$/],
    ['json', /^\{"level":30,"time":\d+,"generation":2,"msg":"configuration reloaded"\}\n$/],
  ])('writes the log on standard error as log_format says: %s', async (log_format, expected) => {
    const values = { enforcement: NOTHING, service: { port: 0, log_level: 'info', log_format } };
    const { stdout, stderr } = await captured(async () => {
      const service = await startService({ environment: {}, configFiles: [], values });
      await service.reload();
      await service.close();
    });
    const lines = stderr.split(/^(?=\S)/m).filter((line) => line.includes('reloaded'));
    expect(lines).toEqual([expect.stringMatching(expected)]);
    expect(stdout).toBe('');
  });

  it('does not start with a mistake in the configuration, of either section', async () => {
    const failure = start({ enabled_filters: ['NoSuchFilter'] }, { port: 70_000, hots: 'x' });
    await expect(failure).rejects.toThrow(ConfigurationError);
    await expect(failure).rejects.toThrow('there is no filter "NoSuchFilter"');
    await expect(failure).rejects.toThrow(
      '[service] port: expected a whole number from 0 to 65535, got 70000',
    );
    await expect(failure).rejects.toThrow(/hots: unknown option; the nearest right name is "host"/);
  });

  it('does not start on a port that is in use, and closes its filters', async () => {
    const { folder, heard } = slowFilter();
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    onTestFinished(() => void other.close());
    const { port } = other.address() as { port: number };
    const failure = start({ enabled_filters: ['SlowFilter'], filters_path: [folder] }, { port });
    await expect(failure).rejects.toThrow(ConfigurationError);
    await expect(failure).rejects.toThrow(
      `[service] cannot listen on 127.0.0.1, port ${port}: the port is in use`,
    );
    expect(heard).toEqual(['closed']);
  });

  it('does not start on an address that the machine does not have', async () => {
    await expect(start(NOTHING, { host: '203.0.113.1', allow_anonymous: true })).rejects.toThrow(
      'this machine has no such address',
    );
  });
});

describe('close', () => {
  it('stops listening, answers requests in progress, and then closes the filters', async () => {
    const { folder, heard } = slowFilter();
    const service = await start({ enabled_filters: ['SlowFilter'], filters_path: [folder] });
    const underWay = fetch(`${service.url}/check-create`, {
      method: 'POST',
      body: FITS,
      headers: { 'Content-Type': 'application/json' },
    });
    await vi.waitFor(() => expect(heard).toEqual(['asked']), { timeout: 30_000, interval: 5 });
    const closed = service.close();
    await expect(fetch(`${service.url}/healthz`)).rejects.toThrow();
    expect((await underWay).status).toBe(204);
    await closed;
    expect(heard).toEqual(['asked', 'answered', 'closed']);
  });

  it('does not wait for connections that are kept alive and idle', async () => {
    const service = await start(NOTHING);
    await (await fetch(`${service.url}/healthz`)).text();
    await service.close();
    await expect(fetch(`${service.url}/healthz`)).rejects.toThrow();
  });
});
