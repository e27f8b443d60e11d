import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';

/** Registers a cleanup: `onTestFinished` of vitest, or a collector for several tests. */
export type WhenDone = (clean: () => void | Promise<void>) => void;

/** A folder that is removed after the test. */
export function temporaryFolder(whenDone: WhenDone = onTestFinished): string {
  const folder = mkdtempSync(join(tmpdir(), 'blazar-enforcement-'));
  // A process that was killed may still be writing.
  whenDone(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

/** A folder for `filters_path` with these files: name → text. */
export function filterFolder(files: Readonly<Record<string, string>>, whenDone?: WhenDone): string {
  const folder = join(temporaryFolder(whenDone), 'filters');
  mkdirSync(folder);
  writeFiles(folder, files);
  return folder;
}

type Files = Readonly<Record<string, string | Uint8Array>>;

/** A folder with these files: path → text. */
export function folderOf(files: Files): string {
  const folder = temporaryFolder();
  writeFiles(folder, files);
  return folder;
}

export function writeFiles(folder: string, files: Files): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
}

/** The text of a filter file: the class `name` with these hook bodies. */
export function filterSource(
  name: string,
  { create = 'return allow();', update = 'return allow();', end = '', extra = '' } = {},
): string {
  return `import { allow, BaseFilter, reject } from 'blazar-enforcement';
export class ${name} extends BaseFilter {
  ${extra}
  checkCreate(context, lease, call) { ${create} }
  checkUpdate(context, currentLease, newLease, call) { ${update} }
  onEnd(context, lease, call) { ${end} }
}
void reject;
`;
}
