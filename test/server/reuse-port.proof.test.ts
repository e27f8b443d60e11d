/** Proves that independent processes share a port. Needs Node.js 22.12 or newer: this one, or the program that NODE_24 names. */
import { spawnSync } from 'node:child_process';
import { request } from 'node:http';
import { describe, expect, it } from 'vitest';
import { canReusePort } from '../../src/server/configuration/options.ts';
import { confFile } from '../support/files.ts';
import { createLasting } from '../support/requests.ts';
import { type RunningCommand, startUntilFinished } from '../support/run-command.ts';
import { readSamples, samplesOf } from '../support/samples.ts';

const node = process.env.NODE_24 ?? process.execPath;
const { stdout: version } = spawnSync(node, ['-p', 'process.versions.node'], { encoding: 'utf8' });
const isNewEnough = canReusePort(version.trim());
if (!isNewEnough) {
  process.stderr.write(
    `SKIPPED: tests of reuse_port: they need Node.js 22.12 or newer, and NODE_24 (${node}) is ${version}`,
  );
}

/** The system divides connections by their ports, so this many are never all for one of two processes. */
const CONNECTIONS = 60;
const LEASE = JSON.stringify(createLasting(60));

interface Replica {
  readonly running: RunningCommand;
  readonly url: string;
  readonly adminUrl: string;
}

async function start(port: string, service = 'reuse_port = true\n'): Promise<Replica> {
  const conf = confFile(
    `[enforcement]\nenabled_filters = MaxLeaseDurationFilter\n[service]\nport = ${port}\nadmin_port = 0\n${service}`,
  );
  const running = startUntilFinished(['serve', '--config-file', conf], { node });
  const [, url = ''] = await running.printed(/^Listening on (\S+)$/m);
  const [, adminUrl = ''] = await running.printed(/^Health and metrics on (\S+)$/m);
  return { running, url, adminUrl };
}

/** The status of a request on a connection of its own. */
const ask = (url: string) =>
  new Promise<number | undefined>((resolve, reject) => {
    request(`${url}/check-create`, {
      method: 'POST',
      agent: false,
      headers: { 'Content-Type': 'application/json' },
    })
      .on('response', (answer) => resolve(answer.resume().statusCode))
      .on('error', reject)
      .end(LEASE);
  });

const asked = async (url: string) =>
  new Set(await Promise.all(Array.from({ length: CONNECTIONS }, () => ask(url))));

/** How many decisions a process has made. */
async function decided({ adminUrl }: Replica): Promise<number> {
  const counts = samplesOf(await readSamples(adminUrl), 'decisions_total');
  return Object.values(counts).reduce((sum, value) => sum + value, 0);
}

describe.skipIf(!isNewEnough)('two processes with reuse_port', () => {
  it('answer at one port, are each counted at a port of their own, and go on when one ends', async () => {
    const first = await start('0');
    const second = await start(new URL(first.url).port);
    expect(second.url).toBe(first.url);
    expect(await asked(first.url)).toEqual(new Set([204]));
    const counts = [await decided(first), await decided(second)];
    expect(counts).toEqual([expect.any(Number), CONNECTIONS - (counts[0] ?? 0)]);
    expect(Math.min(...counts)).toBeGreaterThan(0);

    first.running.process.kill('SIGTERM');
    expect((await first.running.ended).code).toBe(0);
    expect(await asked(second.url)).toEqual(new Set([204]));
    expect(await decided(second)).toBe((counts[1] ?? 0) + CONNECTIONS);
    expect((await fetch(`${second.adminUrl}/readyz`)).status).toBe(200);
  }, 120_000);

  it('let nobody in that does not share the port', async () => {
    const { url } = await start('0');
    const { port } = new URL(url);
    await expect(start(port, '')).rejects.toThrow(`port ${port}: the port is in use`);
    const alone = await start('0', '');
    await expect(start(new URL(alone.url).port)).rejects.toThrow('or one without reuse_port');
  }, 120_000);
});
