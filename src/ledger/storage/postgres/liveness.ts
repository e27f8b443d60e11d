/** Whether PostgreSQL still answers, while one of its answers may take any time. */
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { errorText, LedgerUnavailableError } from '../../../base/errors.ts';
import { asUnavailable, isTlsRefusal } from './queries.ts';

/**
 * Resolves to the answer. Until it comes, asks the server on a new connection every so many milliseconds, and
 * throws a `LedgerUnavailableError` once it is silent; the answer is not awaited any more.
 *
 * A connection that is dead while the server lives is left to TCP keepalive.
 */
export async function whileAlive<Answer>(
  answer: Promise<Answer>,
  newClient: () => pg.Client,
  milliseconds: number,
): Promise<Answer> {
  const stop = new AbortController();
  try {
    return await Promise.race([answer, throwWhenSilent(newClient, milliseconds, stop.signal)]);
  } finally {
    stop.abort();
  }
}

/** Never resolves. Rejects when the signal fires, too. */
async function throwWhenSilent(
  newClient: () => pg.Client,
  milliseconds: number,
  signal: AbortSignal,
): Promise<never> {
  for (;;) {
    await pause(milliseconds, undefined, { signal });
    await ask(newClient(), signal);
  }
}

async function ask(client: pg.Client, signal: AbortSignal): Promise<void> {
  const close = () => client.connection.stream.destroy();
  signal.addEventListener('abort', close, { once: true });
  // A connection that breaks later would end the process.
  client.on('error', () => {});
  try {
    await asUnavailable(client.connect().then(() => client.query('SELECT 1')));
  } catch (thrown) {
    if (!isAnswer(thrown)) {
      throw new LedgerUnavailableError(`the server no longer answers: ${errorText(thrown)}`, {
        cause: thrown,
      });
    }
  } finally {
    signal.removeEventListener('abort', close);
    close();
  }
}

/** Refusals are answers: the server has no free connection, is shutting down, or wants TLS. */
function isAnswer(thrown: unknown): boolean {
  return (thrown instanceof Error && thrown.cause instanceof pg.DatabaseError) || isTlsRefusal(thrown);
}
