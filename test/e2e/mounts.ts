/** File systems of their own, which only root may make. */
import { execFileSync } from 'node:child_process';
import { onTestFinished } from 'vitest';
import { temporaryFolder } from '../support/filter-folder.ts';

export function succeeds(attempt: () => unknown): boolean {
  try {
    attempt();
    return true;
  } catch {
    return false;
  }
}

export const canMount = succeeds(() => {
  execFileSync('unshare', ['--mount', 'mount', '-t', 'tmpfs', 'none', '/mnt'], { stdio: 'ignore' });
});

/** A folder with room for so much, such as `2m`, until the test is over. */
export function mounted(size: string): string {
  const folder = temporaryFolder();
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'none', folder]);
  onTestFinished(() => void execFileSync('umount', ['--lazy', folder]));
  return folder;
}
