/** `ledger upgrade`: makes the tables, or brings them up to date. */
import { Command } from 'commander';
import { onOneLine } from '../output.ts';
import { addSourceFlags, type SourceFlags } from '../sources.ts';
import { configuredLedger, orUnavailable } from './access.ts';

export function upgradeCommand(): Command {
  return addSourceFlags(
    new Command('upgrade').description(
      'Make the tables of [ledger] connection, or bring them up to date. Needs no enabled filter. Tables made by a newer version are refused, and stay as they are.',
    ),
  ).action(upgrade);
}

async function upgrade(flags: SourceFlags): Promise<void> {
  const { connection, options } = await configuredLedger(flags);
  await orUnavailable(connection, async () => {
    const { upgradeLedger } = await import('../../ledger/upgrade.ts');
    const { describeConnection } = await import('../../ledger/storage/connection.ts');
    const applied = await upgradeLedger(options);
    const result = applied.length === 0 ? 'is up to date' : `applied ${applied.join(', ')}`;
    process.stdout.write(`${onOneLine(`${describeConnection(connection)}: ${result}`)}\n`);
  });
}
