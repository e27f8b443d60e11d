import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { describe, expect, it, vi } from 'vitest';
import { ConfigurationError } from '../../src/index.ts';
import { startService } from '../../src/server/service.ts';
import { captured } from '../support/command-in-process.ts';
import { valuesOnly } from '../support/files.ts';
import { filterFolder, filterSource } from '../support/filter-folder.ts';
import { listen } from '../support/listening.ts';
import { recordingLogger } from '../support/logger.ts';

const HAS_IPV6 = Object.values(networkInterfaces()).some((addresses) =>
  addresses?.some(({ address }) => address === '::1'),
);

const NOTHING = { enabled_filters: [] };

const start = (enforcement: Record<string, unknown>, service: Record<string, unknown> = {}) =>
  startService(valuesOnly({ enforcement, service: { port: 0, ...service } }), { logger: recordingLogger() });

/** A filter that notes in `heard` that it was closed. */
function closedFilter(): { folder: string; heard: string[] } {
  const heard: string[] = [];
  vi.stubGlobal('heard', heard);
  const extra = "close() { heard.push('closed'); }";
  return { folder: filterFolder({ 'closed-filter.js': filterSource('ClosedFilter', { extra }) }), heard };
}

describe('startService', () => {
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
      const service = await startService(valuesOnly(values));
      await service.reload();
      await service.close();
    });
    const lines = stderr.split(/^(?=\S)/m).filter((line) => line.includes('reloaded'));
    expect(lines).toEqual([expect.stringMatching(expected)]);
    expect(stdout).toBe('');
  });

  it('logs what nobody has caught, also what cannot be read, thirty times a minute', async () => {
    const logger = recordingLogger();
    const service = await startService(
      valuesOnly({ enforcement: NOTHING, service: { port: 0, log_level: 'error' } }),
      { logger },
    );
    const { proxy, revoke } = Proxy.revocable(new Error(), {});
    revoke();
    for (let count = 0; count < 40; count += 1) {
      service.reportUncaught('rejection', proxy);
    }
    await service.close();
    const lines = logger.lines.filter(({ level }) => level === 'error');
    expect(lines).toHaveLength(31);
    expect(lines[0]).toMatchObject({
      fields: { kind: 'rejection', error: 'the error has no text' },
      message: 'uncaught error, most likely of a filter',
    });
    expect(lines[30]).toMatchObject({ fields: { suppressed: 10 } });
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
    const { folder, heard } = closedFilter();
    const { port } = await listen(createServer());
    const failure = start({ enabled_filters: ['ClosedFilter'], filters_path: [folder] }, { port });
    await expect(failure).rejects.toThrow(ConfigurationError);
    await expect(failure).rejects.toThrow(
      `[service] cannot listen on 127.0.0.1, port ${port}: the port is in use`,
    );
    expect(heard).toEqual(['closed']);
  });
});
