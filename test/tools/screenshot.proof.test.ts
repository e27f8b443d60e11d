/** The pictures in README.md and docs/console.md can be taken again. */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { projectFile } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';

const MAX_BYTES = 150_000;

/** Of a PNG, from its header. */
const widthOf = (picture: Buffer) => picture.readUInt32BE(16);

describe.skipIf(!existsSync('/usr/bin/chromium'))('the screenshots', () => {
  it('are those that the docs show, as wide, and small enough to load at once', () => {
    const taken = temporaryFolder();
    const shown = projectFile('docs/images');
    execFileSync(process.execPath, [projectFile('dist/tools/screenshot.js'), taken]);
    const names = readdirSync(taken);
    expect(names.sort()).toEqual(
      readdirSync(shown)
        .filter((name) => name.endsWith('.png'))
        .sort(),
    );
    expect(names).toContain('console-overview.png');
    for (const name of names) {
      const now = readFileSync(join(taken, name));
      const before = readFileSync(join(shown, name));
      expect(widthOf(now), name).toBe(widthOf(before));
      expect(Math.max(now.length, before.length), name).toBeLessThan(MAX_BYTES);
    }
  });
});
