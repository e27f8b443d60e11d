/** A user chooses the name of a lease: no output may pass its control characters on. From HTTP to the bytes of each output. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { createLogger } from '../../src/base/logger.ts';
import { captured, runProgramInProcess } from '../support/command-in-process.ts';
import { confFile, temporaryFile } from '../support/files.ts';
import { filterFolder, filterSource } from '../support/filter-folder.ts';
import { jsonLines } from '../support/json-lines.ts';
import { newLedger } from '../support/ledgers.ts';
import { createLasting } from '../support/requests.ts';
import { serve } from './serving.ts';

/** C0 and C1, direction overrides and isolates, line separators, tags, half a surrogate pair; each between letters. */
const HOSTILE =
  'a\u001b[2Jb\u0007c\u009b31md\u007fe\u202ef\u2066g\u2069h\u200fi\u061cj\u2028k\u2029l\u200bm\u{e0041}n\ud800o\r\nforged';
/** The ledger refuses what a database cannot keep. */
const KEPT = HOSTILE.replace('\ud800', '');
/** What no output may hold, except for the ends of lines. */
const UNSEEN = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;

/** The service in a process of its own. Its filter logs the name of a lease, and rejects or fails with it. */
async function hostileService() {
  const log = temporaryFile('decisions.jsonl', '');
  const connection = await newLedger();
  const folder = filterFolder({
    'hostile-filter.js': filterSource('HostileFilter', {
      create:
        "this.services.logger.warn({ name: lease.name, [lease.name]: { deep: [lease.name] } }, lease.name); if (lease.status === 'FAIL') { throw new Error(lease.name); } if (lease.status === 'NO') { return reject(lease.name); } return allow();",
    }),
  });
  const conf = confFile(`[service]
port = 0
decision_log = ${log}
[ledger]
connection = ${connection}
[enforcement]
filters_path = ${folder}
enabled_filters = HostileFilter, MaxLeasesFilter
max_leases_per_project = 9
`);
  const { post: send, process, ended } = await serve(['--config-file', conf, '--log-level', 'debug']);
  const post = async (status: string, name = HOSTILE) => {
    const { context, lease } = createLasting(60);
    return (await send('/check-create', { context, lease: { ...lease, status, name } })).status;
  };
  expect([await post('CREATING', KEPT), await post('NO'), await post('FAIL')]).toEqual([204, 403, 403]);
  process.kill('SIGTERM');
  const { stderr } = await ended;
  return { conf, log, stderr };
}

describe('a hostile name', () => {
  it('is escaped in the log, in the decision log, and in what commands print from them', async () => {
    const { conf, log, stderr } = await hostileService();
    expect(stderr).not.toMatch(UNSEEN);
    const lines = jsonLines(stderr);
    expect(lines.filter(({ msg, name }) => msg === HOSTILE && name === HOSTILE)).toHaveLength(2);
    expect(lines.filter(({ error }) => error === HOSTILE)).not.toEqual([]);

    const decisions = readFileSync(log, 'utf8');
    expect(decisions).not.toMatch(UNSEEN);
    const names = decisions
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).lease_name);
    expect(new Set(names)).toEqual(new Set([KEPT, HOSTILE]));

    for (const args of [
      ['decisions', 'tail', log],
      ['decisions', 'tail', log, '--format', 'json'],
      ['decisions', 'stats', log],
      ['ledger', 'list', '--config-file', conf],
      ['ledger', 'list', '--config-file', conf, '--format', 'json'],
      ['ledger', 'show', '#1', '--config-file', conf],
      ['ledger', 'export', '--config-file', conf],
      ['ledger', 'show', HOSTILE, '--config-file', conf],
    ]) {
      const { stdout, stderr } = await runProgramInProcess(args);
      expect(stdout + stderr, args.join(' ')).not.toMatch(UNSEEN);
      expect(stdout + stderr, args.join(' ')).not.toMatch(/^forged/m);
      expect(stdout + stderr, args.join(' ')).not.toBe('');
    }
  });

  it('is escaped in the pretty log', async () => {
    const { stderr } = await captured(async () => {
      createLogger('debug', 'pretty').warn({ name: HOSTILE, [HOSTILE]: { deep: [HOSTILE] } }, HOSTILE);
    });
    expect(stderr).not.toMatch(UNSEEN);
    expect(stderr).not.toMatch(/^ *forged/m);
    expect(stderr).toMatch(
      / WARN \(.*\): a\\u001b\[2Jb\\u0007c\\u009b31md\\u007fe\\u202ef\\u2066g.* forged$/m,
    );
  });
});
