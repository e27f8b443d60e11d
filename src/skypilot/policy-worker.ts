/**
 * The entry point of a policy's thread: constructs the policy and passes questions to it. Started by
 * `policy-thread.ts`.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { Deadline } from '../deadline.ts';
import { createSharedServices } from '../enforcement/services.ts';
import { errorText } from '../errors.ts';
import type { AdminPolicy } from './admin-policy.ts';
import { callPolicy } from './call-policy.ts';
import { policyOf } from './policy-loader.ts';
import type { FromThread, ThreadData, ToThread } from './thread-messages.ts';
import { forwardingLogger, forwardingObserver } from './thread-services.ts';

/** Maximum length of logged texts, in characters. */
const MAX_CAUSE = 4000;

const send = (message: FromThread): void => parentPort?.postMessage(message);

/** Anything can be thrown, including values without a string form. */
function causeOf(thrown: unknown): string {
  try {
    return errorText(thrown).slice(0, MAX_CAUSE);
  } catch {
    return 'the error has no text';
  }
}

async function construct({ specifier, values }: ThreadData): Promise<AdminPolicy> {
  const policyClass = await policyOf(specifier);
  const options: unknown = await policyClass.options.parseAsync(values);
  const services = createSharedServices({
    logger: forwardingLogger(send),
    httpObserver: forwardingObserver(send),
  });
  return new policyClass(options as never, services);
}

async function answer(policy: AdminPolicy, ask: Extract<ToThread, { kind: 'ask' }>): Promise<void> {
  const { id, question, milliseconds } = ask;
  send({ kind: 'taken', id });
  const deadline = new Deadline(milliseconds / 1000);
  try {
    const answered = await callPolicy(policy, question, deadline);
    // An unhandled rejection stops the thread before this runs; then there is no answer.
    await new Promise((resolve) => setImmediate(resolve));
    send(
      'rejected' in answered
        ? { kind: 'rejected', id, rejected: answered.rejected }
        : { kind: 'answered', id, ...answered },
    );
  } catch (thrown) {
    const stack = thrown instanceof Error ? String(thrown.stack).slice(0, MAX_CAUSE) : undefined;
    send({ kind: 'failed', id, cause: causeOf(thrown), ...(stack !== undefined && { stack }) });
  } finally {
    deadline.end();
  }
}

async function close(policy: AdminPolicy): Promise<void> {
  try {
    await policy.close();
    send({ kind: 'closed' });
  } catch (thrown) {
    send({ kind: 'closed', cause: causeOf(thrown) });
  }
}

try {
  const policy = await construct(workerData as ThreadData);
  parentPort?.on('message', (message: ToThread) => {
    void (message.kind === 'ask' ? answer(policy, message) : close(policy));
  });
  send({ kind: 'ready' });
} catch (thrown) {
  send({ kind: 'not-ready', cause: causeOf(thrown) });
}
