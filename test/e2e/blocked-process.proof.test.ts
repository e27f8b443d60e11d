/** Filters that hold the process, or leave something to itself: through `serve`, as an operator has it. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { confFile } from '../support/files.ts';
import { filterFolder, filterSource, temporaryFolder } from '../support/filter-folder.ts';
import { openRaw, postBytes } from '../support/raw-http.ts';
import { createLasting } from '../support/requests.ts';
import type { CommandResult } from '../support/run-command.ts';
import { SOON, serve } from './serving.ts';

const HELD = 75;
/** In seconds. Longer than anything else holds the process on a busy machine. */
const HANG_TIMEOUT = 3;
const TIMEOUT = 600_000;

/** `serve` with one filter whose hooks do this, and an innocent one before it. */
async function guilty(hooks: Parameters<typeof filterSource>[1], service: string) {
  const folder = filterFolder({ 'guilty-filter.js': filterSource('GuiltyFilter', hooks) });
  const conf = confFile(
    `[enforcement]\nfilters_path = ${folder}\nenabled_filters = MaxLeaseDurationFilter, GuiltyFilter\nmax_lease_duration = 172800\n[service]\nport = 0\n${service}\n`,
  );
  const running = await serve(['--config-file', conf]);
  /** Sends it, and does not wait. */
  const send = async (project_id: string) => {
    const { socket } = await openRaw(running.port);
    socket.on('error', () => {});
    socket.write(postBytes('/check-create', JSON.stringify(createLasting(60, { project_id }))));
  };
  return { ...running, send };
}

/** A machine that is too busy to name the filter in time kills the process: then it is tried again. */
async function notKilled(run: () => Promise<CommandResult>): Promise<CommandResult> {
  for (let attempt = 1; ; attempt += 1) {
    const result = await run();
    if (result.code !== null || attempt === 5) {
      return result;
    }
  }
}

const errorsOf = (stderr: string) =>
  stderr
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ level }) => level === 50);

const FOR_EVER: readonly (readonly [string, string])[] = [
  ['while', 'function spin() { while (true) {} } if (context.project_id === "held") spin();'],
  [
    'microtasks',
    'if (context.project_id === "held") return (async function spin() { for (;;) await null; })();',
  ],
  ['a regular expression', 'if (context.project_id === "held") /^(a+)+$/.test("a".repeat(60) + "b");'],
  [
    'a lock',
    'if (context.project_id === "held") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);',
  ],
];

describe('a filter that holds the process', { timeout: TIMEOUT }, () => {
  it('is named, and the process ends with 75', async () => {
    const named = async ([how, create]: (typeof FOR_EVER)[number]) => {
      const { code, stderr } = await notKilled(async () => {
        const { ended, statusFor, send } = await guilty(
          { create: `${create} return allow();` },
          `hang_timeout = ${HANG_TIMEOUT}`,
        );
        expect(await statusFor(60, 'free'), how).toBe(204);
        await send('held');
        return ended;
      });
      expect(code, how).toBe(HELD);
      const [line, ...others] = errorsOf(stderr);
      expect(others, how).toEqual([]);
      expect(line).toMatchObject({
        msg: expect.stringContaining(`nothing else was done for ${HANG_TIMEOUT} s`),
      });
      // Behind its first `await` it is not asked any more, but was the last one.
      expect(line, how).toMatchObject({ [how === 'microtasks' ? 'last_filter' : 'filter']: 'GuiltyFilter' });
      expect(how === 'microtasks' ? 'guilty-filter.js:' : String(line?.at)).toContain('guilty-filter.js:');
      expect(stderr, how).not.toContain('debugger');
    };
    await Promise.all(FOR_EVER.map(named));
  });

  it('is killed where no code of it runs: it waits for a child', async () => {
    const { ended, send } = await guilty(
      {
        create:
          'process.getBuiltinModule("node:child_process").execFileSync("sleep", ["60"]); return allow();',
      },
      `hang_timeout = ${HANG_TIMEOUT}`,
    );
    await send('held');
    const { code, stderr } = await ended;
    expect(code).not.toBe(0);
    expect(errorsOf(stderr)).toMatchObject([{ filter: 'GuiltyFilter' }]);
  });

  it('in onEnd, and in close, is ended too', async () => {
    const { code, stderr } = await notKilled(async () => {
      const { process, ended } = await guilty(
        { extra: 'close() { while (true) {} }' },
        // Far apart: at the end of the grace it is killed, whether it is named by then or not.
        `hang_timeout = ${HANG_TIMEOUT}\nshutdown_grace = 60`,
      );
      process.kill('SIGTERM');
      return ended;
    });
    expect(code).toBe(HELD);
    expect(errorsOf(stderr)).toMatchObject([{ filter: 'GuiltyFilter' }]);
  });

  it('keeps a stop waiting no longer than shutdown_grace, however long it may hold', async () => {
    const isHeld = join(temporaryFolder(), 'held');
    const { process, ended, send } = await guilty(
      {
        create: `process.getBuiltinModule('node:fs').writeFileSync(${JSON.stringify(isHeld)}, ''); while (true) {}`,
      },
      'hang_timeout = 3600\nshutdown_grace = 3',
    );
    await send('held');
    await vi.waitFor(() => expect(existsSync(isHeld)).toBe(true), SOON);
    process.kill('SIGTERM');
    // On a busy machine it is killed before it is found where the filter is.
    expect([HELD, null]).toContain((await ended).code);
  });

  it('for less than hang_timeout goes on, and with 0 for as long as it likes', async () => {
    const create = 'const end = Date.now() + 4000; while (Date.now() < end) {} return allow();';
    const goesOn = async (service: string) => {
      const { process, ended, statusFor } = await guilty({ create }, service);
      expect(await statusFor(60, 'held')).toBe(204);
      process.kill('SIGTERM');
      expect((await ended).code).toBe(0);
    };
    await Promise.all(
      ['hang_timeout = 60\nshutdown_grace = 60', 'hang_timeout = 0\nshutdown_grace = 3'].map(goesOn),
    );
  });

  it('is none where the whole process stood still', async () => {
    const { process, statusFor } = await guilty({}, `hang_timeout = ${HANG_TIMEOUT}`);
    process.kill('SIGSTOP');
    await sleep((HANG_TIMEOUT + 2) * 1000);
    process.kill('SIGCONT');
    await sleep(1000);
    expect(await statusFor(60, 'free')).toBe(204);
  });
});

describe('what a filter leaves to itself', { timeout: TIMEOUT }, () => {
  it('and rejects, is an error in the log and a metric, and the service goes on', async () => {
    const { metric, statusFor, process, ended } = await guilty(
      { create: 'Promise.reject(new Error("forgotten")); return allow();' },
      '',
    );
    for (const project of ['one', 'two']) {
      expect(await statusFor(60, project)).toBe(204);
    }
    await expect.poll(() => metric('uncaught_errors_total', { kind: 'rejection' })).toBe(2);
    process.kill('SIGTERM');
    const { code, stderr } = await ended;
    expect(code).toBe(0);
    expect(errorsOf(stderr)).toMatchObject([
      { kind: 'rejection', error: 'forgotten', stack: expect.stringContaining('guilty-filter.js') },
      { kind: 'rejection' },
    ]);
  });

  it('and throws, is an error in the log; what is under way is finished, and the process ends with 70', async () => {
    const go = join(temporaryFolder(), 'go');
    const create = `if (context.project_id === 'throws') { setTimeout(() => { throw new Error('loose'); }, 0); return allow(); }
      const { existsSync } = process.getBuiltinModule('node:fs');
      return new Promise((resolve) => setInterval(() => existsSync(${JSON.stringify(go)}) && resolve(allow()), 20));`;
    const { underWay, statusFor, ended, output } = await guilty({ create }, '');
    const slow = statusFor(60, 'slow');
    await underWay();
    expect(await statusFor(60, 'throws')).toBe(204);
    await vi.waitFor(() => expect(output().stderr).toContain('loose'), SOON);
    writeFileSync(go, '');
    expect(await slow).toBe(204);
    const { code, stderr } = await ended;
    expect(code).toBe(70);
    expect(errorsOf(stderr)).toMatchObject([{ kind: 'exception', error: 'loose' }]);
  });
});
