/** SkyPilot's own client of admin policies, as its server and its users run it. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll } from 'vitest';
import { projectFile } from './files.ts';

export interface ClientQuestion {
  readonly url: string;
  /** In YAML; several tasks are a pipeline. */
  readonly tasks: readonly string[];
  /** In YAML, without `admin_policy`. */
  readonly config?: string;
  readonly name?: string;
  readonly options?: Readonly<Record<string, unknown>> | null;
  readonly atClientSide?: boolean;
  readonly user?: { readonly id: string; readonly name: string } | null;
  readonly apiVersion?: number | null;
  readonly version?: string | null;
}

interface ClientAnswer {
  /** The bodies of the requests. */
  readonly sent: readonly string[];
  readonly tasks: readonly Record<string, unknown>[];
  /** Alternatives of each task in SkyPilot's format, sorted. */
  readonly resources: readonly (readonly string[])[];
  /** In Python's format: JSON has no key `None`. */
  readonly imageIds: readonly (readonly string[])[];
  readonly config: Readonly<Record<string, unknown>>;
  /** Whether the client got back what it sent. */
  readonly same: boolean;
  /** The result of a second request with the first answer. */
  readonly again?: ClientAnswer;
  /** The class of the error shown to the user, and its text. */
  readonly type?: string;
  readonly error?: string;
}

const WAITS_SECONDS = 120;

const AS_A_SERVER = {
  config: '{}',
  name: 'launch',
  options: { cluster_name: 'test', idle_minutes_to_autostop: null, down: false, dryrun: false },
  atClientSide: false,
  user: { id: 'a1b2c3d4', name: 'lee' },
  apiVersion: 56,
  version: '0.13.0',
};

/**
 * One process for all tests of a `describe`, because its start takes seconds: call it there. By default, the
 * client acts like a SkyPilot server before a launch. `source` is a checkout of SkyPilot; `undefined` = the
 * tests are skipped.
 */
export function skypilotClient(source: string | undefined) {
  let client: ChildProcessWithoutNullStreams | undefined;
  const waiting: ((line: string) => void)[] = [];
  beforeAll(() => {
    if (source !== undefined) {
      client = spawn('python3', [projectFile('test/support/skypilot-client.py'), source]);
      let complaints = '';
      client.stderr.setEncoding('utf8').on('data', (text: string) => {
        complaints = (complaints + text).slice(-2000);
      });
      createInterface({ input: client.stdout }).on('line', (line) => waiting.shift()?.(line));
      client.once('close', () => {
        for (const answer of waiting.splice(0)) {
          answer(JSON.stringify({ type: 'the client has ended', error: complaints }));
        }
      });
    }
  });
  afterAll(() => void client?.stdin.end());
  const said = (question: unknown) =>
    new Promise<unknown>((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error("SkyPilot's client does not answer")),
        WAITS_SECONDS * 1000,
      );
      waiting.push((line) => {
        clearTimeout(timer);
        resolve(JSON.parse(line));
      });
      client?.stdin.write(`${JSON.stringify(question)}\n`);
    });
  return {
    ask: (question: ClientQuestion) => said({ ...AS_A_SERVER, ...question }) as Promise<ClientAnswer>,
    /** SkyPilot's names of requests. */
    names: () => said('names') as Promise<string[]>,
  };
}
