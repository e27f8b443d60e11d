/** A process that ends before it has a result is no success. */
import { expect, it } from 'vitest';
import { aRecord } from '../support/decision-logs.ts';
import { runCommand } from '../support/run-command.ts';
import { folderOf } from '../support/skypilot-cases.ts';

const TIMEOUT = 120_000;

/** A filter that does something at its third lease. */
const filterThat = (does: string) => `import { allow, BaseFilter } from 'blazar-enforcement';
export class LeavingFilter extends BaseFilter {
  #seen = 0;
  checkCreate() {
    this.#seen += 1;
    if (this.#seen >= 3) { ${does} }
    return allow();
  }
  checkUpdate() { return allow(); }
  onEnd() {}
}`;

const REQUEST = {
  context: { user_id: 'alice', project_id: 'climate' },
  lease: {
    name: 'ocean',
    start_date: '2026-12-01T09:00',
    end_date: '2026-12-01T10:00',
    reservations: [{ resource_type: 'physical:host', min: 1, max: 1 }],
  },
};
const LINE = `${JSON.stringify({ ...aRecord(), request: REQUEST })}\n`;

const folderWith = (filter: string, lines: number) =>
  folderOf({
    'blazar.conf': '[enforcement]\nenabled_filters = LeavingFilter\nfilters_path = filters\n',
    'filters/leaving-filter.mjs': filter,
    log: Array.from({ length: lines }, (_, index) => LINE.replaceAll('ocean', String(index))).join(''),
    'request.json': JSON.stringify(REQUEST),
  });

const CONF = ['--config-file', 'blazar.conf'];

it.each([
  ['test --replay', ['test', '--replay', 'log', ...CONF]],
  ['test --record', ['test', '--record', 'log', ...CONF]],
  ['check', ['check', 'create', 'request.json', 'request.json', 'request.json', ...CONF]],
])(
  '%s fails if a filter ends the process, whatever its exit code',
  async (_, args) => {
    for (const code of [0, 1]) {
      const folder = folderWith(filterThat(`process.exit(${code})`), 10);
      const { code: ended, stdout, stderr } = await runCommand(args, { cwd: folder });
      expect([ended, stdout]).toEqual([3, '']);
      expect(stderr).toMatch(/^error: the process was ended before the command was done \(exit code [01]\)/);
    }
  },
  TIMEOUT,
);

it(
  'config validate fails if a filter ends the process while it is loaded',
  async () => {
    const folder = folderWith('process.exit(0);', 0);
    expect(await runCommand(['config', 'validate', ...CONF], { cwd: folder })).toMatchObject({ code: 3 });
  },
  TIMEOUT,
);
