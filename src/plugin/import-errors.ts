/**
 * Errors of plug-in imports. If an imported module imports one with a syntax error, Node 20 reports the error
 * twice: to the caller, and as an unhandled rejection.
 */
const caught = new WeakSet<object>();

export function noteImportError(thrown: unknown): void {
  if (typeof thrown === 'object' && thrown !== null) {
    caught.add(thrown);
  }
}

/** Whether the caller of an import got the error: it needs no further report. */
export function isImportError(thrown: unknown): boolean {
  return typeof thrown === 'object' && thrown !== null && caught.has(thrown);
}
