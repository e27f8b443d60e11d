/** Errors of plug-ins, and of their imports. */
import { fileURLToPath } from 'node:url';
import { stackOf } from '../base/errors.ts';

/**
 * Errors that callers of an import got. If an imported module imports one with a syntax error, Node 20 reports the error
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

/** Of a module, or of CommonJS. The version of a module is between its path and the line. */
const FRAME = /^ +at (?:.*[ (])?(?:file:\/\/)?(\/[^\s?:%]+)(?:\?[^\s:]*)?:(\d+):\d+\)?$/gm;
const OWN_FOLDER = fileURLToPath(new URL('../..', import.meta.url));

/**
 * ` (FILE:LINE)`: the line of a plug-in that threw an error, or called what threw it. Empty = unknown. `name`: of its
 * package, or `package#Name`.
 */
export function placeOf(thrown: unknown, name = ''): string {
  const ofPackage = `/node_modules/${name.replace(/#.*/, '')}/`;
  for (const [, file = '', line] of (stackOf(thrown) ?? '').matchAll(FRAME)) {
    if (file.includes('/node_modules/') ? file.includes(ofPackage) : !file.startsWith(OWN_FOLDER)) {
      return ` (${file}:${line})`;
    }
  }
  return '';
}
