/** Entry point of a policy's thread, started by `policy-thread.ts`: constructs the policy and calls it. */
import dgram from 'node:dgram';
import net from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';
import { Deadline } from '../../../base/deadline.ts';
import type { Logger } from '../../../base/logger.ts';
import { createSharedServices } from '../../../enforcement/services.ts';
import type { ObservedRule, RuleObserver } from '../../../filter/services.ts';
import { rulesOfFailure } from '../../../filter/verdict.ts';
import type { AdminPolicy } from '../../admin-policy.ts';
import { callPolicy, causeText, stackText } from '../call-policy.ts';
import { policyOf } from '../policy-loader.ts';
import type { FromThread, ThreadData, ToThread, Trial } from './thread-messages.ts';

const send = (message: FromThread): void => parentPort?.postMessage(message);

async function construct({ specifier, values, trial }: ThreadData): Promise<AdminPolicy> {
  if (trial !== undefined) {
    beginTrial(trial);
  }
  const policyClass = await policyOf(specifier);
  const options: unknown = await policyClass.options.parseAsync(values);
  const services = createSharedServices({
    logger: forwardingLogger(send),
    // Counts the policy's HTTP calls in the metrics of the process.
    httpObserver: {
      called: (origin, outcome, seconds) => send({ kind: 'called', origin, outcome, seconds }),
      breakerChanged: (origin, state) => send({ kind: 'breaker', origin, state }),
    },
    // Only for `skypilot test`.
    ruleObserver: trial && forwardingRules(send),
  });
  const policy = new policyClass(options as never, services);
  await (policy.open as AdminPolicy['open'] | undefined)?.call(policy);
  return policy;
}

async function answer(policy: AdminPolicy, ask: Extract<ToThread, { kind: 'ask' }>): Promise<void> {
  const { id, question, milliseconds } = ask;
  send({ kind: 'taken', id });
  const deadline = new Deadline(milliseconds / 1000);
  try {
    const answered = await callPolicy(policy, question, deadline);
    // An unhandled rejection stops the thread before this runs; then there is no answer.
    await turn();
    send(
      'rejected' in answered
        ? { kind: 'rejected', id, rejected: answered.rejected, rules: answered.rules }
        : {
            kind: 'answered',
            id,
            rules: answered.rules,
            ...(answered.task !== question.task && { task: answered.task }),
            ...(answered.skypilotConfig !== question.skypilotConfig && {
              skypilotConfig: answered.skypilotConfig,
            }),
          },
    );
  } catch (thrown) {
    const stack = stackText(thrown);
    send({
      kind: 'failed',
      id,
      cause: causeText(thrown),
      ...(stack !== undefined && { stack }),
      rules: rulesOfFailure(thrown),
    });
  } finally {
    deadline.end();
  }
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Starts one question after another: one that blocks the thread must not delay answers to earlier ones. */
class Questions {
  readonly #policy: AdminPolicy;
  readonly #waiting: Extract<ToThread, { kind: 'ask' }>[] = [];
  #isBusy = false;

  constructor(policy: AdminPolicy) {
    this.#policy = policy;
  }

  async add(ask: Extract<ToThread, { kind: 'ask' }>): Promise<void> {
    this.#waiting.push(ask);
    if (this.#isBusy) {
      return;
    }
    this.#isBusy = true;
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      void answer(this.#policy, next);
      // Immediate answers are sent in the first turn.
      await turn();
      await turn();
    }
    this.#isBusy = false;
  }
}

async function close(policy: AdminPolicy): Promise<void> {
  try {
    await policy.close();
    send({ kind: 'closed' });
  } catch (thrown) {
    send({ kind: 'closed', cause: causeText(thrown) });
  }
}

// Services of a policy in a thread: they forward to the main thread by messages.

type Send = (message: FromThread) => void;

/** Limits the log of a policy that logs in an endless loop: lines in a burst … */
const MAX_LINES = 500;
/** … and lines per second after that. */
const LINES_PER_SECOND = 100;
/** Maximum length of a line, in characters. */
const MAX_LINE = 16_384;

/** Forwards log lines to the log of the process, up to the limit. */
function forwardingLogger(send: Send): Logger {
  let room = MAX_LINES;
  let since = performance.now();
  let dropped = 0;
  const write = (level: 'debug' | 'info' | 'warn' | 'error') =>
    ((...line: unknown[]) => {
      const at = performance.now();
      room = Math.min(MAX_LINES, room + ((at - since) / 1000) * LINES_PER_SECOND);
      since = at;
      if (room < 1) {
        dropped += 1;
        return;
      }
      room -= 1;
      if (dropped > 0) {
        send({
          kind: 'logged',
          level: 'warn',
          fields: { lines: dropped },
          message: 'log lines were dropped',
        });
        dropped = 0;
      }
      send({ kind: 'logged', level, ...plainLine(line) });
    }) as Logger['info'];
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
}

/** A log line as plain data: its fields, if they can be written as JSON, and its message. */
function plainLine([first, ...rest]: unknown[]): { fields: Record<string, unknown>; message?: string } {
  const fields = typeof first === 'object' && first !== null ? plainFields(first) : {};
  const texts = (typeof first === 'object' ? rest : [first, ...rest]).filter((text) => text !== undefined);
  const message = texts.map(String).join(' ').slice(0, MAX_LINE);
  return message === '' ? { fields } : { fields, message };
}

function plainFields(fields: object): Record<string, unknown> {
  if (fields instanceof Error) {
    return { error: fields.message.slice(0, MAX_LINE) };
  }
  try {
    const text = JSON.stringify(fields, (_, value: unknown) =>
      typeof value === 'bigint' ? String(value) : value instanceof Error ? value.message : value,
    );
    return text.length > MAX_LINE ? { fields: `${text.slice(0, MAX_LINE)}…` } : JSON.parse(text);
  } catch {
    return { fields: 'cannot be written as JSON' };
  }
}

/** Forwards the outcomes of rules to the observer of the main thread, without reasons. */
function forwardingRules(send: Send): RuleObserver {
  const plain = ({ name, audit, place: { file, line } }: ObservedRule) => ({
    name,
    audit,
    place: { file, line },
  });
  return {
    rulesRead: (rules) => send({ kind: 'rules-read', read: rules.map(plain) }),
    ruleJudged: (rule, said) => send({ kind: 'rule-judged', rule: plain(rule), said }),
  };
}

// The environment of `skypilot test`: a stopped clock, and no network.

/** Changes the globals of this thread: call it only here. */
function beginTrial({ now, network }: Trial): void {
  if (now !== null) {
    stopClock(now);
  }
  if (!network) {
    cutNetwork();
  }
}

function stopClock(now: number): void {
  const Real = Date;
  globalThis.Date = new Proxy(Real, {
    apply: () => new Real(now).toString(),
    construct: (target, args: unknown[], newTarget) =>
      Reflect.construct(target, args.length === 0 ? [now] : args, newTarget) as object,
    get: (target, name, receiver) =>
      name === 'now' ? () => now : (Reflect.get(target, name, receiver) as unknown),
  });
}

const CUT = 'no network in a test: set network: true in the case, or answer in the place of the service';

function cutNetwork(): void {
  net.Socket.prototype.connect = function refuse(this: net.Socket) {
    process.nextTick(() => this.destroy(new Error(CUT)));
    return this;
  };
  dgram.Socket.prototype.send = () => {
    throw new Error(CUT);
  };
}

try {
  const policy = await construct(workerData as ThreadData);
  const questions = new Questions(policy);
  parentPort?.on('message', (message: ToThread) => {
    void (message.kind === 'ask' ? questions.add(message) : close(policy));
  });
  send({ kind: 'ready' });
} catch (thrown) {
  send({ kind: 'not-ready', cause: causeText(thrown) });
}
