import { join } from 'node:path';
import { vi } from 'vitest';
import { skypilotConfigCommand } from '../../src/cli/skypilot/config.ts';
import { runInProcess } from './command-in-process.ts';
import { folderOf } from './filter-folder.ts';

/**
 * Runs `skypilot config` in a temporary folder, whose path is removed from the output. Files are passed by
 * flags: the home folder and the working directory do not belong to the test.
 */
export async function config(files: Readonly<Record<string, string>>, ...args: string[]) {
  const folder = folderOf(files);
  for (const variable of ['SKYPILOT_GLOBAL_CONFIG', 'SKYPILOT_PROJECT_CONFIG']) {
    vi.stubEnv(variable, '/dev/null');
  }
  const named = args.map((arg) => (/^[a-z-]+\.yaml$|^home$/.test(arg) ? join(folder, arg) : arg));
  const { code, stdout, stderr } = await runInProcess(skypilotConfigCommand(), named);
  const [out = '', err = ''] = [stdout, stderr].map((text) => text.replaceAll(`${folder}/`, ''));
  return { code, stdout: out, stderr: err };
}
