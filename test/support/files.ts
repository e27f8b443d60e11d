import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from './filter-folder.ts';

/** The path of a captured request from a real Blazar. */
export function capturedFile(name: string): string {
  return fileURLToPath(new URL(`../fixtures/blazar-wire/${name}.json`, import.meta.url));
}

/** A path inside the project. */
export function projectFile(path: string): string {
  return fileURLToPath(new URL(`../../${path}`, import.meta.url));
}

/** A file that is removed after the test. Only the user can read it, since it may contain a secret. */
export function temporaryFile(name: string, content: string | Uint8Array): string {
  const path = join(temporaryFolder(), name);
  writeFileSync(path, content, { mode: 0o600 });
  return path;
}

/** A configuration file that is removed after the test. */
export function confFile(text: string): string {
  return temporaryFile('blazar.conf', text);
}

/** A configuration of these values, and of nothing that the machine may have. */
export function valuesOnly<Values>(values: Values) {
  return { environment: {}, configFiles: [], values };
}

/** A section of a configuration file with these options. */
export function sectionText(name: string, options: Readonly<Record<string, unknown>>): string {
  const lines = Object.entries(options).map(([option, value]) => `${option} = ${value}\n`);
  return `[${name}]\n${lines.join('')}`;
}
