/**
 * Third-party software to test the project against: a real Blazar, coral-credits, Keystone, Kubernetes
 * control plane and admission plugin. The project does not contain it; tests without it are skipped with a
 * message.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'vitest';
import { projectFile } from './files.ts';

/** The program that starts a peer, below the folder of all peers. */
const PROGRAMS = {
  BLAZAR_PEER: 'blazar/serve.py',
  CORAL_CREDITS_PEER: 'coral-credits/serve.py',
  KEYSTONE_PEER: 'keystone/up.sh',
  KUBERNETES_PEER: 'kubernetes/up.sh',
  KUBERNETES_ADMISSION_PEER: 'kubernetes-admission-policies/judge.xz',
} as const;

/**
 * The program that starts a peer: from the environment variable, otherwise from `shared/peers` beside the
 * project. `undefined` = not found, which is logged once on standard error.
 */
export function peerProgram(variable: keyof typeof PROGRAMS): string | undefined {
  const named = process.env[variable];
  const program = named ?? join(projectFile('..'), 'shared', 'peers', PROGRAMS[variable]);
  if (existsSync(program)) {
    return program;
  }
  skipAloud(variable, `${program} does not exist`);
  return undefined;
}

/** Logs why tests with a peer are skipped. */
export function skipAloud(variable: string, why: string): void {
  process.stderr.write(`SKIPPED: tests beside ${variable}: ${why}\n`);
}

/** Skips a test whose tool is missing, aloud. `version`: arguments with which the tool does nothing. */
export function need(context: TestContext, tool: string, ...version: string[]): void {
  if (spawnSync(tool, version.length === 0 ? ['--version'] : version).status !== 0) {
    const message = `${tool} is not installed: nothing is checked with it here`;
    console.warn(message);
    context.skip(message);
  }
}
