/** The picture in README.md can be taken again. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { projectFile } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';

const MAX_BYTES = 150_000;

/** Of a PNG, from its header. */
const widthOf = (picture: Buffer) => picture.readUInt32BE(16);

describe.skipIf(!existsSync('/usr/bin/chromium'))('the screenshot', () => {
  it('is as wide as the one that README.md shows, and small enough to load at once', () => {
    const taken = join(temporaryFolder(), 'page.png');
    execFileSync(process.execPath, [projectFile('dist/tools/screenshot.js'), taken]);
    const [now, shown] = [readFileSync(taken), readFileSync(projectFile('docs/images/page.png'))];
    expect(widthOf(now)).toBe(widthOf(shown));
    expect(Math.max(now.length, shown.length)).toBeLessThan(MAX_BYTES);
  });
});
