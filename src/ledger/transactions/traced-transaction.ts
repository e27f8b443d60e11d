/**
 * A span for each transaction that a request waits for: with the wait for its turn, and how often it was begun. Without statements and
 * values. Source: OpenTelemetry's semantic conventions for database client spans.
 */
import { LedgerContentError } from '../../base/errors.ts';
import { errorTypeOf, inSpan, type SpanOutcome } from '../../base/tracing.ts';
import type { LedgerOperation } from '../observer.ts';
import type { Dialect } from '../storage/connection.ts';

/** `run`: runs the transaction; call what it is given whenever its work begins. */
export function tracedTransaction<Result>(
  operation: LedgerOperation,
  dialect: Dialect,
  isRefused: (result: Result) => boolean,
  run: (begins: () => void) => Promise<Result>,
): Promise<Result> {
  const started = performance.now();
  let attempts = 0;
  let waited: number | undefined;
  const begins = () => {
    attempts += 1;
    waited ??= (performance.now() - started) / 1000;
  };
  const told = (): SpanOutcome['attributes'] => ({
    'blazar_enforcement.ledger.attempts': attempts,
    ...(waited !== undefined && { 'blazar_enforcement.ledger.wait': waited }),
  });
  return inSpan(
    {
      name: `${operation} ledger`,
      kind: 'client',
      onlyWithin: true,
      attributes: {
        'db.system.name': dialect,
        'db.operation.name': operation,
        'db.query.summary': `${operation} ledger`,
      },
    },
    () => run(begins),
    (result) => ({
      attributes: { ...told(), 'blazar_enforcement.ledger.refused': isRefused(result) },
    }),
    (thrown) => ({ attributes: told(), errorType: failureOf(thrown) }),
  );
}

/** A value that the ledger cannot store is the caller's mistake. */
function failureOf(thrown: unknown): string | undefined {
  return thrown instanceof LedgerContentError ? undefined : errorTypeOf(thrown);
}
