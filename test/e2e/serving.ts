/** `serve` in a process of its own, as an operator runs it. */
import { expect, vi } from 'vitest';
import { metric } from '../support/metric.ts';
import { postJson } from '../support/post-json.ts';
import { createLasting } from '../support/requests.ts';
import { type CommandOptions, type RunningCommand, startUntilFinished } from '../support/run-command.ts';

/** How long it is waited for what must come, of a machine that is busy elsewhere. */
export const SOON = { timeout: 120_000, interval: 20 };

export interface Serving extends RunningCommand {
  readonly url: string;
  readonly port: number;
  /** Sends JSON: a value, or a text as it is. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Response>;
  /** The status for a lease of so many seconds. */
  statusFor(seconds: number, project?: string): Promise<number>;
  metric(name: string, labels?: Record<string, string>): Promise<number>;
  /** Resolves when a filter has been asked about a lease, and has not answered yet. */
  underWay(): Promise<void>;
}

/** Resolves when it listens. It is killed when the test is over. */
export async function serve(args: readonly string[], options: CommandOptions = {}): Promise<Serving> {
  const running = startUntilFinished(['serve', ...args], options);
  const [, url = ''] = await running.printed(/^Listening on (http:\S+)\n[\s\S]*\n\n$/m);
  const post: Serving['post'] = (path, body, headers = {}) => postJson(url + path, body, headers);
  const metricNow: Serving['metric'] = async (name, labels) =>
    metric(await (await fetch(`${url}/metrics`)).text(), `blazar_enforcement_${name}`, labels);
  return {
    ...running,
    url,
    port: Number(new URL(url).port),
    post,
    metric: metricNow,
    statusFor: async (seconds, project) =>
      (
        await post(
          '/check-create',
          createLasting(seconds, project === undefined ? {} : { project_id: project }),
        )
      ).status,
    underWay: () => vi.waitFor(async () => expect(await metricNow('decisions_under_way')).toBe(1), SOON),
  };
}
