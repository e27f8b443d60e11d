/**
 * Mistakes that users and operators can fix. Any other error is a bug, ours or a filter's; its message stays
 * in the log.
 */

/** Where a value was written: a line of a file, an environment variable, a flag, or the code of a caller. */
export type Origin =
  | {
      readonly kind: 'file';
      readonly file: string;
      readonly line: number;
      /** From 1; only where the line is not precise enough. */
      readonly column?: number | undefined;
    }
  | { readonly kind: 'environment'; readonly variable: string }
  | { readonly kind: 'command line'; readonly flag: string }
  | { readonly kind: 'code' }
  | { readonly kind: 'default' };

/** A mistake in a configuration, in words that an operator can act on. */
export interface Problem {
  /** An error prevents the start; a warning is printed. */
  readonly severity: 'error' | 'warning';
  readonly origin?: Origin | undefined;
  readonly section?: string | undefined;
  readonly option?: string | undefined;
  /** What was expected, what was found and what to do. Never contains the value of a secret. */
  readonly message: string;
}

/** `etc/blazar.conf:7`, `OS_ENFORCEMENT__MAX_LEASE_DURATION`, `--config enforcement.max_lease_duration`. */
export function formatOrigin(origin: Origin): string {
  switch (origin.kind) {
    case 'file':
      return `${origin.file}:${origin.line}${origin.column === undefined ? '' : `:${origin.column}`}`;
    case 'environment':
      return origin.variable;
    case 'command line':
      return origin.flag;
    case 'code':
      return 'in code';
    case 'default':
      return 'default';
  }
}

/** `etc/blazar.conf:7: [enforcement] max_lease_duration: expected …, got …` on one line. */
export function formatProblem(problem: Problem): string {
  return `${formatPlace(problem)}${problem.message}`;
}

/** The start of a problem's message: `etc/blazar.conf:7: [enforcement] max_lease_duration: `. */
export function formatPlace(problem: Problem): string {
  const place = problem.origin === undefined ? '' : `${formatOrigin(problem.origin)}: `;
  const section = problem.section === undefined ? '' : `[${problem.section}] `;
  const option = problem.option === undefined ? '' : `${problem.option}: `;
  return `${place}${section}${option}`;
}

/** The configuration cannot be used. `problems` = all errors and warnings; `message` = the errors, one per line. */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError';
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super(
      problems
        .filter((problem) => problem.severity === 'error')
        .map(formatProblem)
        .join('\n'),
    );
    this.problems = problems;
  }
}

/** @throws ConfigurationError with all problems, if one is an error */
export function refuseErrors(problems: readonly Problem[]): void {
  if (problems.some(({ severity }) => severity === 'error')) {
    throw new ConfigurationError(problems);
  }
}

/**
 * The body is not an enforcement request. `field` is the path of the attribute (`lease.end_date`; empty for
 * the whole body), `message` what was expected there. Both may be shown to the client.
 */
export class InvalidRequestError extends Error {
  override readonly name = 'InvalidRequestError';
  readonly field: string;

  constructor(field: string, expectation: string) {
    super(field === '' ? expectation : `${field}: ${expectation}`);
    this.field = field;
  }
}

/** What `parse` returns; its `InvalidRequestError` as another error, made of the field and of what was expected. */
export function retold<Result>(parse: () => Result, told: (field: string, text: string) => Error): Result {
  try {
    return parse();
  } catch (thrown) {
    if (!(thrown instanceof InvalidRequestError)) {
      throw thrown;
    }
    throw told(thrown.field, thrown.message.slice(thrown.field.length).replace(/^: /, ''));
  }
}

/** A `UsageEnforcement` was called after its `close()`. */
export class EnforcementClosedError extends Error {
  override readonly name = 'EnforcementClosedError';

  constructor() {
    super('the usage enforcement is closed');
  }
}

/* Code of others may throw anything: texts of any length, and objects that throw when they are read. These readers never do. */

/** In characters. More than is displayed. */
const MAX_TEXT = 17_000;
/** Of an error without a message. */
const MAX_PARTS = 16;

/** What `look` finds in something thrown; `undefined` = it cannot be read. */
export function lookInto<Found>(look: () => Found): Found | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}

/** As `instanceof`, which throws for some proxies. */
export function isInstance<Class>(
  thrown: unknown,
  type: abstract new (...args: never) => Class,
): thrown is Class {
  return lookInto(() => thrown instanceof type) === true;
}

/** The message of anything that was thrown, for the log. */
export function errorText(thrown: unknown): string {
  const text = lookInto(() => {
    // Node reports an error per address of a name, and no overall message.
    const isOfAddresses = thrown instanceof AggregateError && thrown.message === '';
    const parts: readonly unknown[] = isOfAddresses ? thrown.errors.slice(0, MAX_PARTS) : [thrown];
    return parts
      .map((one) => String(one instanceof Error ? one.message : one))
      .join('; ')
      .slice(0, MAX_TEXT);
  });
  return text ?? 'the error has no text';
}

/** The stack of an error; `undefined` = none. */
export function stackOf(thrown: unknown): string | undefined {
  const stack: unknown = lookInto(() => (thrown instanceof Error ? thrown.stack : undefined));
  return typeof stack === 'string' ? stack.slice(0, MAX_TEXT) : undefined;
}

/** The cause of an error; `undefined` = none. */
export function causeOf(thrown: unknown): unknown {
  return lookInto(() => (thrown instanceof Error ? thrown.cause : undefined));
}

/** The code of a thrown error, such as `ENOENT`; empty = none. */
export function codeOf(thrown: unknown): string {
  const code: unknown = lookInto(() => (thrown instanceof Error && 'code' in thrown ? thrown.code : ''));
  return typeof code === 'string' ? code : '';
}

/** The ledger's database does not answer, or returns an error. Only acknowledged changes have been recorded. */
export class LedgerUnavailableError extends Error {
  override readonly name = 'LedgerUnavailableError';
}

/** The ledger's database cannot store a text or number of a lease. The lease is refused; this is not a fault. */
export class LedgerContentError extends Error {
  override readonly name = 'LedgerContentError';
}
