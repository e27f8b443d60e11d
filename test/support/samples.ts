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

export async function readSamples(url: string): Promise<Samples> {
  const answer = await fetch(`${url}/metrics`);
  return samplesIn(await answer.text());
}
