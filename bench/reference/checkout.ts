/** Another commit of the project, checked out and built in a temporary folder, for `--against`. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';

/** No comparison with a commit is possible. The message is for the user of the bench. */
export class ReferenceProblem extends Error {
  override readonly name = 'ReferenceProblem';
}

export interface Commit {
  /** As typed. */
  readonly ref: string;
  /** The full hash. */
  readonly hash: string;
}

/** The number of output lines to show if a command fails. */
const LAST_LINES = 15;
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** @throws ReferenceProblem */
export function findCommit(root: string, ref: string): Commit {
  let top: string;
  try {
    top = git(root, 'rev-parse', '--show-toplevel');
  } catch (thrown) {
    const isMissing = (thrown as NodeJS.ErrnoException).code === 'ENOENT';
    throw new ReferenceProblem(isMissing ? 'git is not installed' : `${root} is not a git checkout`);
  }
  if (top !== realpathSync(root)) {
    throw new ReferenceProblem(`${root} is not a git checkout`);
  }
  try {
    return {
      ref,
      hash: git(root, 'rev-parse', '--verify', '--quiet', '--end-of-options', `${ref}^{commit}`),
    };
  } catch {
    throw new ReferenceProblem(`expected a tag, branch or commit of this clone, got ${JSON.stringify(ref)}`);
  }
}

/** This tree's compiled bench with that commit's package. `remove` and any exit but SIGKILL delete it all. */
export class Checkout {
  readonly commit: Commit;
  readonly folder: string;
  readonly #root: string;
  readonly #parent: string;
  #command: ChildProcess | undefined;

  constructor(root: string, commit: Commit) {
    this.#root = root;
    this.commit = commit;
    this.#parent = mkdtempSync(join(tmpdir(), 'blazar-enforcement-against-'));
    this.folder = join(this.#parent, 'checkout');
    process.on('exit', this.#removeNow);
    for (const signal of SIGNALS) {
      process.on(signal, exitBySignal);
    }
  }

  /** Resolves when it is ready to be measured. @throws ReferenceProblem */
  async make(tell: (text: string) => void): Promise<void> {
    const { ref, hash } = this.commit;
    // Hooks of the clone do not apply to this checkout.
    const noHooks = ['-c', 'core.hooksPath=/dev/null'];
    git(this.#root, ...noHooks, 'worktree', 'add', '--quiet', '--detach', this.folder, hash);
    const lock = 'package-lock.json';
    const modules = 'node_modules';
    if (sameFile(join(this.#root, lock), join(this.folder, lock)) && existsSync(join(this.#root, modules))) {
      tell(`${ref}: ${lock} is the same: its ${modules} are those of this tree`);
      symlinkSync(realpathSync(join(this.#root, modules)), join(this.folder, modules), 'dir');
    } else {
      tell(`${ref}: ${lock} is another one: npm ci`);
      await this.#run('npm', 'ci', '--include=dev', '--no-audit', '--no-fund');
    }
    tell(`${ref}: npm run build`);
    // Its types were checked before the commit.
    await this.#run('npm', 'run', 'build', '--', '--noCheck');
    this.#addBench();
  }

  /** The folder URL of this tree's compiled bench, with the package of the commit. */
  get bench(): string {
    return new URL(`file://${join(this.folder, 'dist/bench')}/`).href;
  }

  /** The bench of the commit itself. `undefined` = missing, or in another place. */
  get ownBench(): string | undefined {
    const main = join(this.folder, OWN, 'bench/main.js');
    return existsSync(main) ? main : undefined;
  }

  /** The output of a command in the checkout. Rejects if it fails. */
  async #run(command: string, ...parameters: string[]): Promise<void> {
    const { status, output } = await this.run(command, parameters);
    if (status !== 0) {
      const last = output.trimEnd().split('\n').slice(-LAST_LINES).join('\n');
      const said = `${[command, ...parameters].join(' ')} ended with ${status}`;
      throw new ReferenceProblem(`${this.commit.ref} cannot be measured: ${said}:\n${last}`);
    }
  }

  async run(
    command: string,
    parameters: readonly string[],
  ): Promise<{ status: number | string; output: string; stdout: string }> {
    // Its own process group, which ends with all children.
    const child = spawn(command, parameters, {
      cwd: this.folder,
      detached: true,
      env: { ...process.env, NODE_ENV: 'development' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#command = child;
    let output = '';
    let stdout = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
      output += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    try {
      const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
      return { status: code ?? signal ?? 'nothing', output, stdout };
    } catch (thrown) {
      throw new ReferenceProblem(`${command} cannot be run: ${String(thrown)}`);
    } finally {
      this.#command = undefined;
    }
  }

  remove(): void {
    process.off('exit', this.#removeNow);
    for (const signal of SIGNALS) {
      process.off(signal, exitBySignal);
    }
    this.#removeNow();
  }

  readonly #removeNow = (): void => {
    const running = this.#command?.pid;
    if (running !== undefined) {
      try {
        process.kill(-running, 'SIGKILL');
      } catch {
        // It has already ended.
      }
    }
    try {
      // Forced twice: also after an interrupted creation. Removes a link in it, not its target.
      git(this.#root, 'worktree', 'remove', '--force', '--force', this.folder);
    } catch {
      // Not created, or removed as a folder.
    }
    rmSync(this.#parent, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  };

  /** Uses this tree's bench, fixtures and peers for both packages. Those of the commit are kept aside. */
  #addBench(): void {
    const dist = join(this.folder, 'dist');
    const own = join(this.folder, OWN);
    mkdirSync(own);
    for (const name of readdirSync(dist)) {
      if (OF_BENCH.includes(name)) {
        renameSync(join(dist, name), join(own, name));
      } else {
        symlinkSync(join('..', 'dist', name), join(own, name));
      }
    }
    for (const name of OF_BENCH) {
      cpSync(join(this.#root, 'dist', name), join(dist, name), { recursive: true });
    }
    for (const path of ['test/fixtures', 'bench/peers']) {
      cpSync(join(this.#root, path), join(this.folder, path), { recursive: true });
    }
  }
}

/** The folder of the commit's own bench, in its checkout. */
const OWN = 'own';
/** In `dist`: the bench, and its imports from the tests. */
const OF_BENCH = ['bench', 'test'];

/** With the exit code of a shell; the folder is removed on exit. */
function exitBySignal(signal: NodeJS.Signals): void {
  process.exit(128 + constants.signals[signal]);
}

function sameFile(one: string, other: string): boolean {
  return existsSync(one) && existsSync(other) && readFileSync(one).equals(readFileSync(other));
}

function git(root: string, ...parameters: string[]): string {
  const stdio = ['ignore', 'pipe', 'pipe'] as const;
  return execFileSync('git', ['-C', root, ...parameters], { encoding: 'utf8', stdio: [...stdio] }).trim();
}
