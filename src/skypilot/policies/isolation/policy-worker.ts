/**
 * The entry point of a policy's thread: constructs the policy and passes questions to it. Started by
 * `policy-thread.ts`.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { Deadline } from '../../../base/deadline.ts';
import { createSharedServices } from '../../../enforcement/services.ts';
import { rulesOfFailure } from '../../../filter/verdict.ts';
import type { AdminPolicy } from '../../admin-policy.ts';
import { callPolicy } from '../call-policy.ts';
import { policyOf } from '../policy-loader.ts';
import { causeText, stackText } from '../thrown.ts';
import type { FromThread, ThreadData, ToThread } from './thread-messages.ts';
import { forwardingLogger, forwardingObserver, forwardingRules } from './thread-services.ts';

const send = (message: FromThread): void => parentPort?.postMessage(message);

async function construct({ specifier, values, trial }: ThreadData): Promise<AdminPolicy> {
  if (trial !== undefined) {
    (await import('../trial.ts')).beginTrial(trial);
  }
  const policyClass = await policyOf(specifier);
  const options: unknown = await policyClass.options.parseAsync(values);
  const services = createSharedServices({
    logger: forwardingLogger(send),
    httpObserver: forwardingObserver(send),
    // Rules are observed where they are tested.
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
            ...{ kind: 'answered', id, rules: answered.rules },
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

/** Begins one question after another: one that holds the thread must not hold the answers to those before it. */
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
      // What is answered without waiting is sent in the first turn.
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
