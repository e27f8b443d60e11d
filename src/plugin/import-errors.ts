/**
 * What imports of plug-ins have thrown. If an imported module imports one with a syntax error, Node 20 reports the error twice:
 * to the caller, and as a rejection that nobody has caught.
 */
const caught = new WeakSet<object>();

export function noteImportError(thrown: unknown): void {
  if (typeof thrown === 'object' && thrown !== null) {
    caught.add(thrown);
  }
}

/** Whether the caller of an import has been told of it: it needs no further report. */
export function isImportError(thrown: unknown): boolean {
  return typeof thrown === 'object' && thrown !== null && caught.has(thrown);
}
