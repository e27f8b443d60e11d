/** Runs SkyPilot's own code, from the checkout in `SKYPILOT_SOURCE`. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { projectFile } from './files.ts';
import { temporaryFolder } from './filter-folder.ts';
import { skipAloud } from './peers.ts';

const PYTHON = 'python3';

/** The checkout. `undefined` = not set, which is logged once on standard error. */
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

/** Runs a helper in `test/support` with one JSON line for each question; it answers each with one line. */
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

/**
 * Runs a Python script with SkyPilot, and returns its JSON list `answers`, computed from `asked`. Needs the
 * dependencies of SkyPilot, or stand-ins for them in `PYTHONPATH`, installed by a module `sky_stub`. Its
 * start takes seconds, so ask all questions at once.
 */
export function runWithSkypilot<Answer>(source: string, script: string, asked: unknown): Answer[] {
  const { stdout, stderr, status } = spawnSync(PYTHON, ['-c', `${BEFORE}${script}${AFTER}`, source], {
    input: JSON.stringify(asked),
    encoding: 'utf8',
    env: { ...process.env, HOME: temporaryFolder() },
    maxBuffer: 1 << 30,
  });
  if (status !== 0) {
    throw new Error(`SkyPilot does not run: ${stderr.slice(-2000)}`);
  }
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Answer[];
}

const BEFORE = `
import json, sys
sys.path.insert(0, sys.argv[1])
try:
    import sky_stub
except ImportError:
    pass
out, sys.stdout = sys.stdout, sys.stderr
asked = json.load(sys.stdin)
`;
const AFTER = `
out.write('\\n' + json.dumps(answers, default=str))
`;
