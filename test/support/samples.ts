import { expect, vi } from 'vitest';

/** The samples of `/metrics`: `name{label="value"}` → value. */
export type Samples = Readonly<Record<string, number>>;

export function samplesIn(text: string): Samples {
  return Object.fromEntries(
    text
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => {
        const [, name = '', value = ''] = /^(.+) (\S+)$/.exec(line) ?? [];
        return [name.replace(/^blazar_enforcement_/, ''), Number(value)];
      }),
  );
}

/** The samples of one metric: labels → value. */
export function samplesOf(samples: Samples, metric: string): Samples {
  return Object.fromEntries(
    Object.entries(samples)
      .filter(([name]) => name === metric || name.startsWith(`${metric}{`))
      .map(([name, value]) => [name.slice(metric.length), value]),
  );
}

/** For a service, or metrics, in this process: advances two seconds per call, so no text is cached. */
export function hurriedClock(): () => number {
  let now = 0;
  return () => {
    now += 2000;
    return now;
  };
}

/** For services with `hurriedClock`, or if `/metrics` is read once. `token`: also shows single budgets. */
export async function readSamples(url: string, token?: string): Promise<Samples> {
  const answer = await fetch(
    `${url}/metrics`,
    token === undefined ? {} : { headers: { 'X-Auth-Token': token } },
  );
  return samplesIn(await answer.text());
}

/**
 * The text of `/metrics` of a service in another process, rendered after this call: the first text may be a
 * second old. Texts always differ, because they count their reads.
 */
export async function freshMetrics(url: string): Promise<string> {
  const read = async () => (await fetch(`${url}/metrics`)).text();
  const old = await read();
  return vi.waitFor(
    async () => {
      const text = await read();
      expect(text, 'metrics are rendered again').not.toBe(old);
      return text;
    },
    { timeout: 240_000, interval: 100 },
  );
}

export async function freshSamples(url: string): Promise<Samples> {
  return samplesIn(await freshMetrics(url));
}
