import { chmodSync, chownSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { upgradeTables } from '../../../../src/ledger/storage/migrations/index.ts';
import { temporaryFolder } from '../../../support/filter-folder.ts';

const SERVICE = 65_534;

it.skipIf(process.getuid?.() !== 0)(
  'a new ledger that root makes belongs to the owner of its folder',
  async () => {
    const folder = temporaryFolder();
    chownSync(folder, SERVICE, SERVICE);
    chmodSync(folder, 0o750);
    const file = join(folder, 'ledger.db');
    await upgradeTables({ dialect: 'sqlite', file });
    expect(statSync(file)).toMatchObject({ uid: SERVICE, gid: SERVICE });

    chownSync(file, 0, 0);
    await upgradeTables({ dialect: 'sqlite', file });
    expect(statSync(file), 'one that is there stays as it is').toMatchObject({ uid: 0, gid: 0 });
  },
);
