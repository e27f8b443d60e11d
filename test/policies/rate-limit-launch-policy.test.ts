import { describe, expect, it } from 'vitest';
import { RateLimitLaunchPolicy } from '../../policies/rate-limit-launch-policy.ts';
import { createSharedServices } from '../../src/enforcement/services.ts';
import { Config } from '../../src/skypilot/config/config.ts';
import { rejectedWith, UNCHECKED } from '../support/decisions.ts';
import { type Asked, askTwice, chainOf, LEE, TASK } from './helpers.ts';

const START = Date.parse('2026-11-21T12:00:00Z');

/** Two launches in 60 seconds, and a clock that the test moves. */
async function limited(policies = ['RateLimitLaunchPolicy']) {
  let now = START;
  const { ask, logger } = await chainOf(
    policies,
    { rate_limit_launch: 2, rate_limit_launch_seconds: 60 },
    { clock: { now: () => new Date(now) } },
  );
  const launch = (cluster: string, asked: Asked = {}) =>
    ask({ ...asked, options: { clusterName: cluster, ...asked.options } });
  return { ask, launch, logger, wait: (seconds: number) => (now += seconds * 1000) };
}

describe('RateLimitLaunchPolicy', () => {
  it('counts each launch that names no cluster', async () => {
    const { ask } = await limited();
    for (const allowed of [true, true, false]) {
      expect((await ask({ options: { clusterName: null } })).allowed).toBe(allowed);
    }
  });

  it('limits the launches of each user, and says when to try again', async () => {
    const { launch, wait } = await limited();
    expect((await launch('a')).allowed).toBe(true);
    wait(20);
    expect((await launch('b')).allowed).toBe(true);
    wait(10.5);
    expect(await launch('c')).toMatchObject(
      rejectedWith('Too many launches: the limit is 2 in 60 seconds. Please try again in 30 seconds.'),
    );
    expect((await launch('c', { user: { ...LEE, id: 'another' } })).allowed).toBe(true);
    wait(29);
    expect((await launch('c')).allowed).toBe(false);
    wait(1);
    expect((await launch('c')).allowed).toBe(true);
    expect((await launch('d')).allowed).toBe(false);
  });

  it('does not count rejected launches', async () => {
    const { launch, wait } = await limited();
    await launch('a');
    await launch('b');
    wait(59);
    for (const cluster of ['c', 'd', 'e']) {
      expect((await launch(cluster)).allowed).toBe(false);
    }
    wait(1);
    expect((await launch('c')).allowed).toBe(true);
    expect((await launch('d')).allowed).toBe(true);
  });

  it('counts a command once, however often SkyPilot calls it', async () => {
    const { ask, launch } = await limited();
    for (const cluster of ['a', 'b']) {
      const options = { clusterName: cluster };
      expect((await ask({ options, atClientSide: true })).allowed).toBe(true);
      for (const name of ['validate', 'optimize', 'launch']) {
        expect((await ask({ options, name })).allowed).toBe(true);
      }
    }
    expect((await launch('c')).allowed).toBe(false);
  });

  it('counts a repeated request for a launch once, and changes nothing', async () => {
    const { ask, launch, wait } = await limited();
    for (const _ of [1, 2, 3]) {
      expect(await askTwice(ask, {})).toMatchObject({ changed: false, task_: TASK });
    }
    wait(29);
    await askTwice(ask, {});
    expect((await launch('b')).allowed).toBe(true);
    expect((await launch('c')).allowed).toBe(false);
    // Also at the limit: a launch that was let through is not rejected when it is asked about again.
    wait(0.5);
    expect((await launch('b')).allowed).toBe(true);
  });

  it('counts the same command again later', async () => {
    const { launch, wait } = await limited();
    await launch('a');
    wait(30);
    await launch('a');
    expect((await launch('b')).allowed).toBe(false);
  });

  it('recognizes a launch whose resources other policies changed', async () => {
    for (const policies of [
      ['RateLimitLaunchPolicy', 'SetMaxAutostopIdleMinutesPolicy'],
      ['SetMaxAutostopIdleMinutesPolicy', 'RateLimitLaunchPolicy'],
    ]) {
      const { ask, launch } = await limited(policies);
      await askTwice(ask, {});
      expect((await launch('b')).allowed).toBe(true);
      expect((await launch('c')).allowed).toBe(false);
    }
  });

  it('counts another task or another cluster as another launch', async () => {
    const { launch } = await limited();
    await launch('a');
    await launch('a', { task: 'run: something else\nnumber: 123456789012345678901234567890\n' });
    expect((await launch('a', { task: 'run: a third\n' })).allowed).toBe(false);
  });

  it('counts only launches, and no dry runs', async () => {
    const { launch } = await limited();
    for (const cluster of ['a', 'b', 'c', 'd']) {
      expect((await launch(cluster, { options: { dryrun: true } })).allowed).toBe(true);
      for (const name of ['exec', 'jobs.launch', 'jobs.launch_cluster', 'serve.up']) {
        expect((await launch(cluster, { name })).allowed).toBe(true);
      }
    }
    expect((await launch('a')).allowed).toBe(true);
  });

  it('fails when the server sends no user', async () => {
    const { launch, logger } = await limited();
    expect(await launch('a', { user: null })).toMatchObject(UNCHECKED);
    expect(JSON.stringify(logger.lines)).toContain('sent no user');
  });

  it('makes nobody wait after the clock was set back', async () => {
    const { launch, wait } = await limited();
    await launch('a');
    await launch('b');
    wait(-86_400);
    expect((await launch('c')).allowed).toBe(true);
  });

  it('remembers at most 10000 users, and forgets the least recent one', () => {
    const clock = { now: () => new Date(START) };
    const policy = new RateLimitLaunchPolicy(
      { rate_limit_launch: 2, rate_limit_launch_seconds: 60 },
      createSharedServices({ clock }),
    );
    const launch = (id: string, cluster: string) =>
      policy.validateAndMutate({
        task: {},
        skypilotConfig: Config.fromDict({}),
        requestName: 'launch',
        atClientSide: false,
        clientApiVersion: null,
        clientVersion: null,
        user: { ...LEE, id },
        requestOptions: { clusterName: cluster, idleMinutesToAutostop: null, down: false, dryrun: false },
      });
    for (let user = 0; user < 10_000; user += 1) {
      launch(String(user), 'a');
    }
    launch('0', 'b');
    launch('one more', 'a');
    expect(() => launch('0', 'c')).toThrow('Too many launches');
    launch('1', 'b');
    launch('1', 'c');
  });
});
