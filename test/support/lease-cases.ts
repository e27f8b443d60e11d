/** Folders of cases, beside a configuration with rules. */
import { runProgramInProcess } from './command-in-process.ts';
import { folderOf } from './filter-folder.ts';

export const NOW = 'now: 2026-11-21T09:00:00Z\n';

export const RULES = `rules:
  - name: two-days
    match: context.project_id == "students"
    allow: hours(lease) <= 48.0
    message: Students have leases of at most 2 days.
  - name: no-gpus
    allow: reservations.all(r, property(r, 'gpu') != 'True')
    message: GPUs are not for lease.
`;

/** A configuration with RULES and other filters. */
export function confWith(filters: string, more = ''): string {
  return `[enforcement]\nenabled_filters = RulesFilter${filters}\nrules_path = rules.yaml\n${more}`;
}

/** Runs `test` in a new folder with these files. */
export async function testIn(
  files: Readonly<Record<string, string | Uint8Array>>,
  ...args: readonly string[]
) {
  const folder = folderOf({ 'blazar.conf': confWith(''), 'rules.yaml': RULES, ...files });
  return { folder, ...(await runProgramInProcess(['test', ...args], { cwd: folder })) };
}

/** The output for a single case: its result and reason, without its name. */
export async function caseIn(text: string, conf = confWith('')): Promise<string> {
  const { stdout, stderr } = await testIn({ 'blazar.conf': conf, 'cases/one.yaml': text });
  const [, row = ''] = stdout.split('\n');
  return `${row.replace(/^cases\/\S+(?:: (?:a|\d))?\s+/, '').replace(/ +/g, ' ')}${stderr}`;
}
