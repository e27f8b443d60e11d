/** Asks SkyPilot's own code, if a checkout of it is named by `SKYPILOT_SOURCE`. */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { projectFile } from './files.ts';
import { skipAloud } from './peers.ts';

const PYTHON = 'python3';

/** The checkout. `undefined` = there is none, which is said once on standard error. */
export function skypilotSource(): string | undefined {
  const { SKYPILOT_SOURCE: source } = process.env;
  if (source === undefined || source === '') {
    skipAloud('SKYPILOT_SOURCE', 'it names no checkout of SkyPilot');
    return undefined;
  }
  if (!existsSync(join(source, 'sky', 'skypilot_config.py'))) {
    skipAloud('SKYPILOT_SOURCE', `${source} is not a checkout of SkyPilot`);
    return undefined;
  }
  return source;
}

/** Runs a helper in `test/support` with one line of JSON for each question; it answers each with one line. */
export function askSkypilot<Answer>(source: string, helper: string, questions: readonly unknown[]): Answer[] {
  const output = execFileSync(PYTHON, [projectFile(`test/support/${helper}`), source], {
    input: questions.map((question) => `${JSON.stringify(question)}\n`).join(''),
    encoding: 'utf8',
    maxBuffer: 1 << 30,
  });
  return output
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Answer);
}
