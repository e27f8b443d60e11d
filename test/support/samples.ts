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

/** For a service or metrics whose text is made anew each time that it is read: more than a second passes between two looks at it. */
export function hurriedClock(): () => number {
  let now = 0;
  return () => {
    now += 2000;
    return now;
  };
}

/** `token`: to see single budgets too. */
export async function readSamples(url: string, token?: string): Promise<Samples> {
  const answer = await fetch(
    `${url}/metrics`,
    token === undefined ? {} : { headers: { 'X-Auth-Token': token } },
  );
  return samplesIn(await answer.text());
}
