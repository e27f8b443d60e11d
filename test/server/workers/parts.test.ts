/** The parts of a service of several workers that need no process. */
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Problem } from '../../../src/errors.ts';
import type { HttpCallError } from '../../../src/http/call-error.ts';
import type { BreakerState, CallEvent } from '../../../src/http/contract.ts';
import { createGuard } from '../../../src/http/guard.ts';
import { Metrics } from '../../../src/server/metrics/metrics.ts';
import type { Readiness } from '../../../src/server/openapi/bodies.ts';
import { Agreements, type Party, type Prepared } from '../../../src/server/workers/agreement.ts';
import { WorkerBreakers } from '../../../src/server/workers/breakers.ts';
import { ConnectionLine, type Taker } from '../../../src/server/workers/connection-line.ts';
import { Heartbeats } from '../../../src/server/workers/heartbeats.ts';
import { Pauses } from '../../../src/server/workers/pauses.ts';
import { shareOf, workerCount } from '../../../src/server/workers/share.ts';
import { WholeMetrics } from '../../../src/server/workers/whole-metrics.ts';
import { readOthersReadiness, wholeReadiness } from '../../../src/server/workers/whole-readiness.ts';
import { projectFile } from '../../support/files.ts';
import { samplesIn } from '../../support/samples.ts';

const PROBLEM: Problem = { severity: 'error', message: 'no' };

describe('a limit that is divided among workers', () => {
  it('is what all parts are together, and no part differs from another by more than one', () => {
    fc.assert(
      fc.property(fc.nat(1_000_000), fc.integer({ min: 1, max: 64 }), (limit, of) => {
        const parts = Array.from({ length: of }, (_, index) => shareOf(limit, { number: index + 1, of }));
        expect(parts.reduce((sum, part) => sum + part)).toBe(limit);
        expect(Math.max(...parts) - Math.min(...parts)).toBeLessThanOrEqual(1);
      }),
    );
  });

  it('is divided among as many as there are cores, and never more than 64', () => {
    expect([workerCount('3', 8), workerCount('auto', 8), workerCount('auto', 500)]).toEqual([3, 8, 64]);
  });
});

describe('pauses before a worker is started again', () => {
  it('double up to half a minute, and are short again after a long life', () => {
    const pauses = new Pauses();
    expect(Array.from({ length: 11 }, () => pauses.after(10))).toEqual([
      ...[100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600],
      ...[30_000, 30_000],
    ]);
    expect([pauses.after(60_000), pauses.after(0)]).toEqual([100, 200]);
  });
});

describe('readiness of several workers', () => {
  const READY: Readiness = { status: 'ready', generation: 3, problems: [] };
  const whole = (...others: [number, object | null][]) =>
    wholeReadiness(
      READY,
      readOthersReadiness(
        JSON.stringify(others.map(([number, one]) => [number, one && JSON.stringify(one)])),
      ),
    );

  it('is that of the one that answers, if all others are ready', () => {
    expect(whole()).toEqual(READY);
    expect(whole([2, READY], [3, READY])).toEqual(READY);
  });

  it('is missing when one does not answer, which is named', () => {
    expect(whole([2, READY], [3, null])).toEqual({
      ...READY,
      status: 'worker not ready',
      problems: ['worker 3: it does not answer requests'],
    });
  });

  it('is missing when one says so, with its reasons', () => {
    const status = 'policies not known';
    expect(
      whole([2, { ...READY, status, problems: ['too old'] }], [3, { ...READY, status: 'draining' }]),
    ).toEqual({
      ...READY,
      status,
      problems: ['worker 2: too old', 'worker 3: draining'],
    });
  });

  it('tells a mistake that all have once', () => {
    const own: Readiness = { status: 'configuration not valid', generation: 3, problems: ['a mistake'] };
    expect(wholeReadiness(own, [{ number: 2, readiness: own }])).toEqual(own);
  });
});

class Sheet implements Party {
  readonly number: number;
  readonly heard: string[] = [];
  readonly #answers: Prepared[];

  constructor(number: number, ...answers: Prepared[]) {
    this.number = number;
    this.#answers = answers;
  }

  async prepare(): Promise<Prepared> {
    this.heard.push('prepare');
    return this.#answers.shift() ?? { digest: 'same' };
  }

  async take(): Promise<void> {
    this.heard.push('take');
  }

  async drop(_round: number, [problem]: readonly Problem[]): Promise<void> {
    this.heard.push(`drop: ${problem?.message}`);
  }
}

describe('what all workers use or none', () => {
  const agree = (...parties: Sheet[]) => new Agreements().agree('configuration', parties);

  it('is used when all have prepared the same', async () => {
    const parties = [new Sheet(1), new Sheet(2), new Sheet(3)];
    expect(await agree(...parties)).toEqual({ digest: 'same' });
    expect(parties.map(({ heard }) => heard)).toEqual(Array(3).fill(['prepare', 'take']));
  });

  it('is dropped by all when one refuses it', async () => {
    const parties = [new Sheet(1), new Sheet(2, { problems: [PROBLEM] }), new Sheet(3)];
    expect(await agree(...parties)).toEqual({ digest: undefined });
    expect(parties.map(({ heard }) => heard)).toEqual(Array(3).fill(['prepare', 'drop: no']));
  });

  it('is not even prepared by the others when the first refuses it', async () => {
    const parties = [new Sheet(1, { problems: [PROBLEM] }), new Sheet(2)];
    expect(await agree(...parties)).toEqual({ digest: undefined });
    expect(parties[1]?.heard).toEqual([]);
  });

  it('is not used when one refuses it without a reason, as one that ends does', async () => {
    const parties = [new Sheet(1), new Sheet(2, { problems: [] })];
    expect(await agree(...parties)).toEqual({ digest: undefined });
    expect(parties[0]?.heard).not.toContain('take');
  });

  it('is prepared again when they have read different files, three times at most', async () => {
    const once = [new Sheet(1, { digest: 'old' }), new Sheet(2)];
    expect(await agree(...once)).toEqual({ digest: 'same' });
    const old = { digest: 'old' };
    const never = [new Sheet(1, old, old, old, old), new Sheet(2)];
    expect(await agree(...never)).toEqual({ digest: undefined });
    expect(never[0]?.heard.filter((what) => what === 'prepare')).toHaveLength(3);
    expect(never.flatMap(({ heard }) => heard)).not.toContain('take');
  });
});

/** A connection, as far as the line knows it. */
function connection() {
  const socket = { destroyed: false, on() {}, destroy: () => Object.assign(socket, { destroyed: true }) };
  return socket as unknown as Socket;
}

class Hands implements Taker {
  readonly given: number[] = [];
  isThere = true;

  hand(id: number): boolean {
    if (this.isThere) {
      this.given.push(id);
    }
    return this.isThere;
  }
}

describe('accepted connections', () => {
  it('are given in turns', () => {
    const line = new ConnectionLine();
    const [one, other] = [new Hands(), new Hands()];
    line.join(one);
    line.join(other);
    for (let count = 0; count < 6; count += 1) {
      line.add(connection());
    }
    expect([one.given.length, other.given.length]).toEqual([3, 3]);
  });

  it('go to another worker when the one that was sent them dies before it has them', () => {
    const line = new ConnectionLine();
    const [one, other] = [new Hands(), new Hands()];
    line.join(one);
    const sockets = [connection(), connection()];
    for (const socket of sockets) {
      line.add(socket);
    }
    line.confirmed(one, one.given[0] ?? 0);
    expect(sockets.map(({ destroyed }) => destroyed)).toEqual([true, false]);
    line.join(other);
    line.gone(one);
    expect(other.given).toHaveLength(1);
  });

  it('wait while no worker confirms any, or none is there', () => {
    const line = new ConnectionLine();
    const stopped = new Hands();
    line.join(stopped);
    const sockets = Array.from({ length: 10 }, connection);
    for (const socket of sockets) {
      line.add(socket);
    }
    expect(stopped.given).toHaveLength(4);
    const other = new Hands();
    line.join(other);
    expect(other.given).toHaveLength(4);
    other.isThere = false;
    line.confirmed(other, other.given[0] ?? 0);
    const next = new Hands();
    line.gone(stopped);
    line.gone(other);
    line.join(next);
    expect(next.given).toHaveLength(4);
    line.close();
    expect(sockets.filter(({ destroyed }) => destroyed).length).toBeGreaterThan(1);
  });
});

describe('a worker that does not say that it is there', () => {
  it('is told of after its time, counted in looks, and not while it starts', () => {
    const silent: string[] = [];
    const worker = (name: string, isReady: boolean) => ({ name, isReady, beats: 0 });
    const [beating, held, starting] = [worker('beating', true), worker('held', true), worker('new', false)];
    const heartbeats = new Heartbeats(
      1,
      () => [beating, held, starting],
      (one) => silent.push(one.name),
    );
    heartbeats.close();
    for (let look = 0; look < 10; look += 1) {
      beating.beats += 1;
      heartbeats.look();
    }
    expect(silent).toEqual(['held']);
  });
});

describe('circuit breakers of several workers', () => {
  /** Two workers, each with the other's ear, and a guard of the same service in each. */
  function guards(breakerFailures: number) {
    const told: (() => void)[] = [];
    const workers: WorkerBreakers[] = [0, 1].map(
      (own) => new WorkerBreakers((key, event) => told.push(() => workers[1 - own]?.heard(key, event))),
    );
    const options = { timeout: 1, connectRetries: 0, breakerFailures, breakerCooldown: 60 };
    const states: BreakerState[][] = [[], []];
    const made = workers.map((worker, index) =>
      createGuard(
        options,
        (state) => states[index]?.push(state),
        (heard) => worker.join('http://it', heard),
      ),
    );
    const call = async (worker: number, status: number) => {
      const answered = await made[worker]?.(called, async () => ({ status, body: '' })).catch(
        (error: HttpCallError) => error.code,
      );
      for (const tell of told.splice(0)) {
        tell();
      }
      // A breaker opens with its next turn.
      await new Promise((next) => setImmediate(next));
      return typeof answered === 'object' ? answered.status : answered;
    };
    return { call, states };
  }

  it('open together, after as many failures in a row as one would', async () => {
    const { call, states } = guards(4);
    expect([await call(0, 500), await call(1, 500), await call(0, 500)]).toEqual([500, 500, 500]);
    expect(states).toEqual([['closed'], ['closed']]);
    expect(await call(1, 500)).toBe(500);
    expect([await call(0, 200), await call(1, 200)]).toEqual(['breaker-open', 'breaker-open']);
    expect(states).toEqual(Array(2).fill(['closed', 'open']));
  });

  const GUARDED = { timeout: 1, connectRetries: 0, breakerFailures: 2, breakerCooldown: 60 };
  const called = { url: new URL('http://it/'), method: 'POST' } as const;
  /** What a first call comes to, which would be answered. */
  const firstCall = (worker: WorkerBreakers) =>
    createGuard(GUARDED, undefined, (heard) => worker.join('it', heard))(called, async () => ({
      status: 204,
      body: '',
    })).then(
      ({ status }) => status,
      (error: HttpCallError) => error.code,
    );

  it('are open in a worker that makes its first call after the others have failed', async () => {
    const worker = new WorkerBreakers(() => {});
    worker.heard('it', 'failed');
    worker.heard('it', 'failed');
    expect(await firstCall(worker)).toBe('breaker-open');
  });

  it('are as closed as those of the others after a success, or too few failures', async () => {
    for (const events of [['failed'], ['failed', 'failed', 'succeeded'], ['failed', 'succeeded', 'failed']]) {
      const worker = new WorkerBreakers(() => {});
      for (const event of events) {
        worker.heard('it', event as CallEvent);
      }
      expect(await firstCall(worker)).toBe(204);
    }
  });

  it('are open in a worker that replaces another for as long as in the others', async () => {
    const failedFor = (seconds: number) =>
      firstCall(new WorkerBreakers(() => {}, [['it', { count: 2, lastAt: Date.now() - seconds * 1000 }]]));
    expect([await failedFor(50), await failedFor(61)]).toEqual(['breaker-open', 204]);
  });

  it('begin anew with new filters, as in one process', async () => {
    const worker = new WorkerBreakers(() => {}, [['it', { count: 2, lastAt: Date.now() }]]);
    expect([await firstCall(worker), await firstCall(worker)]).toEqual(['breaker-open', 204]);
  });

  it('count from the beginning when a call of any worker succeeds', async () => {
    const { call, states } = guards(2);
    for (const worker of [0, 1, 0]) {
      expect(await call(worker, 500)).toBe(500);
      expect(await call(1 - worker, 204)).toBe(204);
    }
    expect(states).toEqual([['closed'], ['closed']]);
  });
});

/** Gauges of which each worker has a part. Whoever adds one to the documentation says here what it is of the whole. */
const SUMMED = [
  ...['ledger_commits_in_doubt', 'keystone_tokens_known', 'keystone_validations_under_way'],
  ...['decision_store_waiting', 'decisions_under_way', 'decisions_queued'],
];
const WORST_IS_LEAST = ['ledger_available', 'configuration_valid'];

describe('metrics of several workers', () => {
  const gauges = (generation: number) => ({
    ...{ underWay: () => 2, queued: () => 1, generation: () => generation, configurationIsValid: () => true },
  });

  it('are summed, unless all workers have the same, and keep what was counted by those that are gone', async () => {
    const whole = new WholeMetrics(2, () => 2);
    const [one, other] = [new Metrics(gauges(3)), new Metrics({ ...gauges(3), countsForAll: () => false })];
    one.answered('/check-create', 204);
    other.answered('/check-create', 204);
    for (const metrics of [one, other]) {
      metrics.reloaded('applied');
      whole.heard(metrics, await metrics.own());
    }
    const expected = {
      'http_requests_total{path="/check-create",status="204"}': 2,
      'reloads_total{outcome="applied"}': 1,
      ...{ generation: 3, configuration_valid: 1, workers: 2 },
    };
    const before = samplesIn(await whole.text([one, other]));
    expect(before).toMatchObject({ ...expected, decisions_under_way: 4, decisions_queued: 2 });
    await whole.gone(one);
    whole.ended('hung');
    const after = samplesIn(await whole.text([other]));
    expect(after).toMatchObject({
      ...expected,
      decisions_under_way: 2,
      'worker_ends_total{reason="hung"}': 1,
    });
  });

  it('count a reload once, whichever worker counts, and however many have been replaced', async () => {
    const whole = new WholeMetrics(2, () => 2);
    for (let worker = 1; worker <= 3; worker += 1) {
      const metrics = new Metrics(gauges(worker));
      metrics.reloaded('applied');
      whole.heard(metrics, await metrics.own());
      await whole.gone(metrics);
    }
    expect(samplesIn(await whole.text([]))).toMatchObject({ 'reloads_total{outcome="applied"}': 3 });
  });

  it('say of every gauge what it is of the whole', async () => {
    const listed = readFileSync(projectFile('docs/reference/metrics.md'), 'utf8');
    const names = [...listed.matchAll(/^\| `(blazar_enforcement_\w+)` +\| gauge /gm)].map(
      ([, name = '']) => name,
    );
    const all = names.filter((name) => !/_workers(_running)?$/.test(name));
    const part = (value: number) =>
      JSON.stringify(
        all.map((name) => {
          return { name, help: '', type: 'gauge', aggregator: 'sum', values: [{ value, labels: {} }] };
        }),
      );
    const whole = new WholeMetrics(2, () => 2);
    const workers = [{}, {}];
    whole.heard(workers[0] ?? {}, part(1));
    whole.heard(workers[1] ?? {}, part(2));
    const samples = samplesIn(await whole.text(workers));
    const how = (value: number) =>
      all.filter((name) => samples[name.replace('blazar_enforcement_', '')] === value);
    expect(how(3)).toEqual(SUMMED.map((name) => `blazar_enforcement_${name}`));
    expect(how(1)).toEqual(WORST_IS_LEAST.map((name) => `blazar_enforcement_${name}`));
    expect(how(2)).toHaveLength(all.length - SUMMED.length - WORST_IS_LEAST.length);
  });
});
