/** Rules of a service that are read again: what is no longer in force is refused or said. */
import { rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFile } from '../../support/files.ts';
import { createLasting } from '../../support/requests.ts';
import { runServiceOnFile } from '../../support/running-service.ts';

const RULES = `rules:
  - {name: one-hour, allow: hours(lease) <= 1.0, message: At most an hour.}
  - {name: two-hours, allow: hours(lease) <= 2.0, message: At most two hours.}
`;
const TWO_HOURS = JSON.stringify(createLasting(2 * 3600));

async function onRules() {
  const first = temporaryFile('a.yaml', RULES);
  const folder = dirname(first);
  const other = join(folder, 'b.yaml');
  writeFileSync(other, 'rules:\n  - {name: day, allow: hours(lease) <= 24.0, message: At most a day.}\n');
  const running = await runServiceOnFile(
    `[enforcement]\nenabled_filters = RulesFilter\nrules_path = ${folder}\n[service]\nport = 0\n`,
  );
  return {
    ...running,
    first,
    other,
    said: () => JSON.stringify(running.logger.lines),
    refuses: async () => (await running.post('/check-create', TWO_HOURS)).status === 403,
  };
}

describe('rules that are read again', () => {
  it('stay in force when their file is cut off or empty, and a restart is asked for', async () => {
    const { service, first, said, refuses, request } = await onRules();
    for (const [text, problem] of [
      [
        RULES.slice(0, RULES.indexOf('  - {name: two')),
        'the end of the file is gone, and with it rule two-hours',
      ],
      [RULES.replace('1.0', '8.0').trimEnd(), 'no longer ends with a line break'],
      ['', 'expected a mapping with the key rules, got an empty file'],
    ] as const) {
      writeFileSync(first, text);
      await expect(service.reload()).resolves.toBe(false);
      expect(said()).toContain(problem);
      expect(await request('/readyz')).toMatchObject({ status: 503 });
      expect(await refuses()).toBe(true);
    }
    writeFileSync(first, RULES);
    await expect(service.reload()).resolves.toBe(true);
  });

  it('are named in the log when they are added, changed or gone', async () => {
    const { service, first, other, said, refuses } = await onRules();
    expect(said()).toMatch(/"rules":3,"files":2[^}]*\}?.*rules are in force|rules are in force/);
    rmSync(other);
    await expect(service.reload()).resolves.toBe(true);
    expect(said()).toMatch(/"gone":\["day"\]/);
    writeFileSync(first, `${RULES.replace('1.0', '8.0')}  - {name: new, allow: 1 < 2, message: New.}\n`);
    await expect(service.reload()).resolves.toBe(true);
    expect(said()).toMatch(/"added":\["new"\],"changed":\["one-hour"\]/);
    expect(await refuses()).toBe(false);
  });
});
