/** `outbox`: what operators see of messages that are not delivered, and what they decide. */

import { expect, it } from 'vitest';
import { outboxCommand } from '../../src/cli/outbox.ts';
import { UsageEnforcement } from '../../src/index.ts';
import { rows } from '../support/check-command.ts';
import { runInProcess } from '../support/command-in-process.ts';
import { confFile } from '../support/files.ts';
import { breakLedger, newLedger } from '../support/ledgers.ts';
import { recordingLogger } from '../support/logger.ts';
import { printed, refused } from '../support/run-command.ts';
import { unusedPort } from '../support/unused-port.ts';

/** An outbox with the ends of three leases, of a service that is never there. */
async function filled() {
  const connection = await newLedger();
  const file = confFile(`[enforcement]
enabled_filters = ExternalServiceFilter
external_service_base_endpoint = http://127.0.0.1:${await unusedPort()}
external_service_delivery = durable
[ledger]
connection = ${connection}
`);
  const enforcement = await UsageEnforcement.load(
    { configFiles: [file], environment: {} },
    { logger: recordingLogger() },
  );
  await enforcement.stopDelivering();
  for (const [project_id, id] of [
    ['climate', 'lease-1'],
    ['climate', '\u001b[31mred\n'],
    ['ocean', 'lease-3'],
  ] as const) {
    const dates = { start_date: '2026-12-01 00:00', end_date: '2026-12-02 00:00' };
    const lease = { id, name: 'run', ...dates, reservations: [] };
    await enforcement.onEnd({ context: { project_id, user_id: 'alice' }, lease });
  }
  await enforcement.close();
  const outbox = (...args: string[]) => runInProcess(outboxCommand(), [...args, '--config-file', file]);
  const numbers = async (...args: string[]) => rows((await outbox('list', ...args)).stdout).map(([id]) => id);
  return { connection, outbox, numbers };
}

it('prints messages, oldest first, on one line each', async () => {
  const { outbox } = await filled();
  const stdout = printed(await outbox('list'));
  const lines = stdout.trimEnd().split('\n');
  expect(lines[0]).toMatch(/^MESSAGE +STATE +FILTER +PROJECT +LEASE +WRITTEN +ATTEMPTS +ERROR$/);
  expect(lines[1]).toMatch(/^1 +waiting +ExternalServiceFilter +climate +lease-1 +\S+Z +\d+/);
  expect(lines).toHaveLength(4);
  expect(stdout).not.toContain('\u001b');
});

it('prints the selected messages, and as JSON', async () => {
  const { outbox, numbers } = await filled();
  expect(await numbers('--project', 'ocean')).toEqual(['MESSAGE', '3']);
  expect(await numbers('--limit', '1')).toEqual(['MESSAGE', '1']);
  expect(await numbers('--state', 'dead')).toEqual(['MESSAGE']);
  const { stdout } = await outbox('list', '--format', 'json', '--project', 'ocean');
  expect(JSON.parse(stdout)).toMatchObject([
    { message: 3, state: 'waiting', filter: 'ExternalServiceFilter', lease_id: 'lease-3' },
  ]);
});

it('prints a message with its body', async () => {
  const { outbox } = await filled();
  const { stdout } = await outbox('show', '1', '--format', 'json');
  const { body, state } = JSON.parse(stdout) as { body: string; state: string };
  expect(state).toBe('waiting');
  expect(JSON.parse(body)).toMatchObject({ context: { project_id: 'climate' }, lease: { id: 'lease-1' } });
  const table = await outbox('show', '2');
  expect(table.stdout).toContain('project_id');
  expect(table.stdout).not.toContain('\u001b');
});

it('discards messages with a reason, and keeps them in sight', async () => {
  const { outbox, numbers } = await filled();
  const { code, stdout } = await outbox('discard', '1', '3', '--reason', 'told by hand', '--who', 'bob');
  expect({ code, stdout }).toEqual({ code: 0, stdout: '2 messages discarded\n' });
  expect(await numbers()).toEqual(['MESSAGE', '2']);
  const { stdout: json } = await outbox('list', '--state', 'discarded', '--format', 'json');
  expect(JSON.parse(json)).toMatchObject([
    { message: 1, who: 'bob', reason: 'told by hand' },
    { message: 3, who: 'bob', reason: 'told by hand' },
  ]);
  expect((await outbox('discard', '--all', '--reason', 'x')).stdout).toBe('0 messages discarded\n');
});

it('has messages tried again', async () => {
  const { outbox } = await filled();
  expect((await outbox('retry', '1')).stdout).toBe('1 message to be tried again\n');
  expect((await outbox('retry', '--all')).stdout).toBe('3 messages to be tried again\n');
});

it.each([
  [['retry']],
  [['retry', '1', '--all']],
  [['retry', '99']],
  [['retry', '1', '99']],
  [['retry', 'first']],
  [['show', '99']],
  [['show', '1; drop table outbox']],
  [['list', '--limit', '0']],
])('ends with 2 and one line, and changes nothing: %s', async (args) => {
  const { outbox, numbers } = await filled();
  expect(await outbox(...args)).toEqual(refused(/^error: .+\n$/));
  expect(await numbers()).toEqual(['MESSAGE', '1', '2', '3']);
});

it('ends with 3 if the ledger cannot be read', async () => {
  const { outbox, connection } = await filled();
  breakLedger(connection, 'outbox');
  expect(await outbox('list')).toEqual(refused(/^error: .+\n$/, 3));
});
