/** Folding leases into totals and back, on the command line: what it prints, and what it refuses. */

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { contentOf } from '../../ledger/folding/folded-ledgers.ts';
import { copiedLedgers, recordLease } from '../../ledger/recorded-leases.ts';
import { rows } from '../../support/check-command.ts';
import { runProgramInProcess } from '../../support/command-in-process.ts';
import { confFile } from '../../support/files.ts';
import { temporaryFolder } from '../../support/filter-folder.ts';
import { jsonLines } from '../../support/json-lines.ts';
import { ledgerAt } from '../../support/ledgers.ts';
import { refused, refusedWith } from '../../support/run-command.ts';
import { COMING, OVER } from './setup.ts';

/** Three leases of 2016, and one of the far future. */
const newLedger = copiedLedgers(async (connection) => {
  const ledger = await ledgerAt(connection);
  for (const [name, projectId] of [
    ['first', 'climate'],
    ['second', 'climate'],
    ['third', 'ocean'],
  ] as const) {
    await recordLease(ledger, { name, projectId, leaseId: `lease-${name}`, ...OVER });
  }
  await recordLease(ledger, { name: 'coming', ...COMING });
  // Nothing notices by itself that they have ended.
  await recordLease(ledger, { name: 'later', projectId: 'ocean', ...COMING });
  await ledger.close();
});

/** The whole command line: it is about flags, too. */
function ledgerOn(connection: string) {
  const conf = confFile(
    `[enforcement]\nenabled_filters = MaxLeasesFilter\nmax_leases_per_project = 1000\n[ledger]\nconnection = ${connection}\n`,
  );
  return (...args: string[]) => runProgramInProcess(['ledger', ...args, '--config-file', conf]);
}

const BEFORE = ['--before', '2017-01-01'];

async function filled(file = 'folded.jsonl') {
  const connection = await newLedger();
  const ledger = ledgerOn(connection);
  const path = join(temporaryFolder(), file);
  const content = async () => {
    const ledger = await ledgerAt(connection);
    try {
      return await contentOf(ledger);
    } finally {
      await ledger.close();
    }
  };
  return {
    connection,
    path,
    content,
    ledger,
    compact: () => ledger('compact', ...BEFORE, '--export', path),
    restore: () => ledger('restore', '--from', path),
  };
}

const done = (stdout: string) => ({ code: 0, stderr: '', stdout });
const FOLDED = 'Folded what ended before 2017-01-01T00:00:00Z: leases 3, entries 15, projects 2\n';

describe('ledger compact', () => {
  it('only counts with --dry-run', async () => {
    const { ledger, content } = await filled();
    const before = await content();
    expect(await ledger('compact', ...BEFORE, '--dry-run')).toEqual(
      done(FOLDED.replace('Folded', 'Would fold')),
    );
    const { stdout } = await ledger('compact', ...BEFORE, '--dry-run', '--format', 'json');
    expect(JSON.parse(stdout)).toMatchObject({ leases: 3, entries: 15, projects: 2, dry_run: true });
    expect(await content()).toEqual(before);
  });

  it.each(['folded.jsonl', 'folded.jsonl.gz'])(
    'writes %s, from which everything comes back',
    async (file) => {
      const { compact, restore, content, path } = await filled(file);
      const before = await content();
      expect(await compact()).toEqual(done(FOLDED));
      const bytes = readFileSync(path);
      const lines = String(file.endsWith('.gz') ? gunzipSync(bytes) : bytes).split('\n');
      expect(lines).toHaveLength(5);
      expect(await restore()).toEqual(done('Restored leases 3, there already 0\n'));
      expect(await content()).toEqual(before);
      expect(await restore()).toEqual(done('Restored leases 0, there already 3\n'));
      expect(await content()).toEqual(before);
    },
  );

  it('folds nothing a second time, and makes no file for it', async () => {
    const { compact, ledger, path } = await filled();
    await compact();
    const again = `${path}.again`;
    expect(await ledger('compact', ...BEFORE, '--export', again)).toEqual(
      done('Folded what ended before 2017-01-01T00:00:00Z: leases 0, entries 0, projects 0\n'),
    );
    expect(existsSync(again)).toBe(false);
  });

  it.each<[string, string[], RegExp]>([
    [
      'no date at all',
      ['--before', 'yesterday'],
      /^error: --before: expected a date in ISO 8601, got "yesterday"$/,
    ],
    ['no file', BEFORE, /^error: --export: expected the name of a file that keeps the leases, or --dry-run$/],
    [
      'tomorrow',
      ['--before', '2095-01-01', '--dry-run'],
      /^error: --before: expected a date that is at least a day ago$/,
    ],
  ])('refuses %s, and changes nothing', async (_, flags, message) => {
    const { ledger, content } = await filled();
    const before = await content();
    const { code, stdout, stderr } = await ledger('compact', ...flags);
    expect({ code, stdout, stderr: stderr.split('\n')[0] }).toEqual(refused(message));
    expect(await content()).toEqual(before);
  });

  it('overwrites no file', async () => {
    const { compact, path, content } = await filled();
    writeFileSync(path, 'the only copy');
    const before = await content();
    expect(await compact()).toEqual(
      refused(`${path}: the file exists, and is not overwritten; name another one`),
    );
    expect(readFileSync(path, 'utf8')).toBe('the only copy');
    expect(await content()).toEqual(before);
  });

  it('folds nothing that it cannot write', async () => {
    const { ledger, content, path } = await filled();
    const before = await content();
    expect(await ledger('compact', ...BEFORE, '--export', join(path, 'nowhere', 'x'))).toEqual(
      refusedWith('leases that are not in the file are still in the ledger', 74),
    );
    expect(await content()).toEqual(before);
  });
});

describe('ledger restore', () => {
  const folded = async (file?: string) => {
    const ground = await filled(file);
    expect((await ground.compact()).code).toBe(0);
    return ground;
  };

  const CONTENTS: [string, (text: string) => string | Uint8Array, string][] = [
    ['is empty', () => '', ': expected a file that ledger compact has written; it has no line'],
    [
      'is something else',
      () => '{"leases": []}\n',
      ':1: expected the head of a file that ledger compact has written',
    ],
    ['is no text', () => Buffer.from([0xff, 0xfe, 0x00]), ': expected text in UTF-8'],
    ['is compressed, and does not say so', (text) => gzipSync(text), ': expected text in UTF-8'],
    [
      'has a line of its own',
      (text) => text.replace('\n', '\nhello\n'),
      ':2: expected a lease that was folded',
    ],
    [
      'has an amount that no database holds',
      (text) => text.replace(/"delta":"[^"]*"/, `"delta":"${2n ** 63n}"`),
      ':2: expected a lease that was folded',
    ],
  ];
  it.each(CONTENTS)('refuses a file that %s', async (_, change, message) => {
    const { restore, path, content } = await folded();
    const before = await content();
    writeFileSync(path, change(readFileSync(path, 'utf8')));
    expect(await restore()).toEqual(refused(`${path}${message}`));
    expect(await content()).toEqual(before);
  });

  it('refuses a folder, a file that is not there, and one that is not compressed as its name says', async () => {
    const { ledger, path } = await folded();
    const folder = join(temporaryFolder(), 'folder');
    mkdirSync(folder);
    expect(await ledger('restore', '--from', folder)).toMatchObject({ code: 2, stdout: '' });
    expect(await ledger('restore', '--from', `${path}.no`)).toEqual(
      refused(/^error: .*\.no: there is no such file\n$/),
    );
    const named = `${path}.gz`;
    writeFileSync(named, readFileSync(path));
    expect(await ledger('restore', '--from', named)).toEqual(refused(`${named}: incorrect header check`));
  });

  it.each(['folded.jsonl', 'folded.jsonl.gz'])(
    'restores what there is of %s if its end is missing, and says so',
    async (file) => {
      const whole = await filled(file);
      const before = await whole.content();
      expect((await whole.compact()).code).toBe(0);
      const bytes = readFileSync(whole.path);
      writeFileSync(whole.path, bytes.subarray(0, bytes.length - 20));
      const cut = await whole.restore();
      expect(cut).toEqual({
        code: 0,
        stderr: `warning: ${whole.path}: the end of the file is missing: its last line is cut off\n`,
        stdout: expect.stringMatching(
          /^Restored leases 2, there already 0\nStill folded before 2017-01-01T00:00:00Z, in another file: leases 1\n$/,
        ),
      });
      expect((await whole.ledger('verify')).code).toBe(0);
      writeFileSync(whole.path, bytes);
      expect(await whole.restore()).toEqual(done('Restored leases 1, there already 2\n'));
      expect(await whole.content()).toEqual(before);
    },
  );

  it('refuses the file of another ledger', async () => {
    const { ledger, path } = await folded();
    writeFileSync(path, readFileSync(path, 'utf8').replace(/"ledger":"./, '"ledger":"_'));
    expect(await ledger('restore', '--from', path)).toEqual(
      refused(`${path}: its leases are of another ledger`),
    );
  });

  it('exits with 1 if the ledger has not folded the leases, and leaves it as it is', async () => {
    const { restore, path, content } = await folded();
    const before = await content();
    writeFileSync(path, readFileSync(path, 'utf8').replace(/"until":"\d+"/, '"until":"1483228800000001"'));
    expect(await restore()).toEqual({
      code: 1,
      stderr: '',
      stdout:
        'Restored leases 0, there already 0\nNot restored: the ledger has not folded 3 leases of the file\n',
    });
    expect(await content()).toEqual(before);
  });

  it('exits with 1 if a lease was recorded again since, and names it', async () => {
    const { restore, connection, ledger } = await folded();
    const book = await ledgerAt(connection);
    await recordLease(book, { name: 'again', leaseId: 'lease-first', ...COMING });
    await book.close();
    expect(await restore()).toEqual({
      code: 1,
      stderr: '',
      stdout:
        'Restored leases 2, there already 0\nNot restored: lease-first was recorded again since\nStill folded before 2017-01-01T00:00:00Z, in another file: leases 1\n',
    });
    expect((await ledger('verify')).code).toBe(0);
  });
});

describe('a list without folded leases', () => {
  const note = (leases: number) =>
    `${leases} leases that ended before 2017-01-01T00:00:00Z are folded into totals and not here; see ledger compact`;

  it('says how many there are, and since when', async () => {
    const { compact, ledger } = await filled();
    expect((await ledger('list')).stderr).toBe('');
    await compact();
    const all = await ledger('list');
    expect(all.stderr).toBe(`warning: ${note(3)}\n`);
    expect(rows(all.stdout)).toHaveLength(3);
    expect((await ledger('list', '--project', 'climate')).stderr).toBe(`warning: ${note(2)}\n`);
    expect((await ledger('list', '--project', 'desert')).stderr).toBe('');
    expect((await ledger('list', '--state', 'open')).stderr).toBe('');
    expect(await ledger('show', 'lease-first')).toEqual(
      refused(`the ledger has no lease lease-first; ledger list prints its leases; ${note(3)}`),
    );
  });

  it('has their totals, if it is the export', async () => {
    const { compact, ledger } = await filled();
    await compact();
    const { stdout, stderr } = await ledger('export', '--project', 'climate');
    expect(stderr).toBe(`warning: ${note(2)}\n`);
    const records = jsonLines(stdout);
    expect(records.filter(({ kind }) => kind.startsWith('folded'))).toEqual([
      {
        kind: 'folded',
        project_id: 'climate',
        region: '',
        before: '2017-01-01T00:00:00Z',
        leases: '2',
        entries: '10',
      },
      {
        kind: 'folded_balance',
        project_id: 'climate',
        account: 'usage_budget/1',
        unit_hours: '48',
        amount: '172800000000',
      },
    ]);
  });
});
