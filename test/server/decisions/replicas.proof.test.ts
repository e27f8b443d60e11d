/** Two processes on one database: each lists both, and says in what they differ. */
import { expect, it } from 'vitest';
import { startService } from '../../support/ledger-processes.ts';
import { DIALECTS, newLedgers, runSql as runInFile } from '../../support/ledgers.ts';
import { runSql as runOnServer } from '../../support/postgres-activity.ts';
import { rowsOf, visitor } from '../console/visitor.ts';

const newLedger = newLedgers();

async function fixture(dialect: (typeof DIALECTS)[number]) {
  const connection = await newLedger(dialect);
  const start = (limit: number) =>
    startService({
      connection,
      enabled: 'MaxLeasesFilter',
      enforcement: `max_leases_per_project = ${limit}`,
    });
  const statement = (text: string) =>
    dialect === 'sqlite' ? runInFile(connection, text) : runOnServer(connection, text);
  return { start, statement };
}

/** The table of the overview, and all of the page. */
async function overview(url: string) {
  const { status, html, text } = await visitor(url).get('/');
  expect(status).toBe(200);
  return { rows: rowsOf(html, 'Replicas of the service'), text };
}

for (const dialect of DIALECTS) {
  it(`with ${dialect}: lists those that are there, and warns when their configurations differ`, async () => {
    const { start, statement } = await fixture(dialect);
    const first = await start(5);
    const second = await start(5);
    const names = async () => (await overview(first.url)).rows.map((row) => row[0] ?? '');
    await expect.poll(async () => (await names()).length).toBe(2);
    const { rows, text } = await overview(second.url);
    expect(text).not.toContain('Replicas differ');
    expect(text).toContain('Circuit breakers of external services');
    expect(rows.filter(([name]) => name?.includes(`/${second.process.pid}/`))).toEqual([
      [
        expect.stringMatching(/ this one$/),
        expect.stringMatching(/^\d+\.\d+\.\d+/),
        '1',
        expect.stringMatching(/^[0-9a-f]{16}$/),
      ],
    ]);
    // Killed, it says nothing more, and comes back with another limit.
    await second.kill();
    const again = await start(6);
    await expect
      .poll(async () => (await overview(first.url)).text)
      .toContain('Replicas differ in their configuration: their decisions may differ, too.');
    // Half a minute later.
    await statement(
      `UPDATE replicas SET seen_at = seen_at - 40000000 WHERE name LIKE '%/${second.process.pid}/%'`,
    );
    const others = async () => (await names()).filter((name) => !name.includes(`/${first.process.pid}/`));
    await expect.poll(others).toEqual([expect.stringContaining(`/${again.process.pid}/`)]);
    // Stopped, it is gone at once.
    again.process.kill('SIGTERM');
    await expect.poll(others).toEqual([]);
    expect((await overview(first.url)).text).not.toContain('Replicas differ');
  });
}

it('decides without the table of replicas, and says that the list cannot be read', async () => {
  const { start, statement } = await fixture('postgresql');
  await statement('DROP TABLE replicas');
  const { url, log } = await start(5);
  expect((await overview(url)).text).toContain('The list of replicas cannot be read at the moment.');
  await expect.poll(log).toContain('this replica cannot be listed for the others');
});
