/** Rules like those of operators, and files of them. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Each can be expressed in other engines: see rule-peers.ts. */
export const TEN_RULES: readonly string[] = [
  'hours(lease) <= 48.0',
  "size(lease, 'physical:host') <= 4",
  'hours(lease) * double(size(lease, "physical:host")) <= 96.0',
  "reservations.all(r, r.resource_type == 'physical:host')",
  "!overlaps(lease, '2027-07-20', '2027-07-23')",
  "lease.start_date < timestamp('2027-12-31T00:00:00Z')",
  "context.region in ['RegionOne', 'RegionTwo', 'RegionThree']",
  "!(context.user_id in ['3d9b1f0c6a774f3fb1d5b0a1c2e4f697', '9a1c5b1f5d7a4c0c8a6f0d6b7f3e2d10'])",
  "context.project_id != '9a1c5b1f5d7a4c0c8a6f0d6b7f3e2d10' || hours(lease) <= 24.0",
  "lease.name != '' && !lease.name.startsWith('test-')",
];

/** Fifty rules that allow the captured request on any of its days: ten kinds with five values each. */
export function fiftyRules(): string[] {
  return [1, 2, 3, 4, 5].flatMap((number) => [
    `hours(lease) <= ${24 * number + 24}.0`,
    `size(lease, 'physical:host') <= ${number + 1}`,
    `!reservations.exists(r, property(r, 'node_type') == 'gpu_v${number}00')`,
    `allocations.all(host, host.vcpus <= ${100 * number})`,
    `!(lease.start_date.getDayOfWeek('Europe/Berlin') == 6 && size(lease, 'physical:host') > ${number + 2})`,
    `!overlaps(lease, '203${number}-07-20', '203${number}-07-23')`,
    `lease.end_date - lease.start_date <= duration('${48 + number}h')`,
    `context.region in ['RegionOne', 'RegionTwo', 'Region${number}']`,
    `context.project_id != 'student-${number}' || hours(lease) <= 24.0`,
    `!lease.name.startsWith('test-${number}') && size(lease.name) <= ${100 * number}`,
  ]);
}

export interface RuleFile {
  readonly path: string;
  remove(): void;
}

/** Writes a file for `rules_path`. */
export function writeRules(rules: readonly string[]): RuleFile {
  const folder = mkdtempSync(join(tmpdir(), 'blazar-enforcement-bench-'));
  const path = join(folder, 'rules.yaml');
  const written = rules.map((rule, index) => ({
    name: `rule-${index + 1}`,
    allow: rule,
    message: `Rule ${index + 1} does not allow this lease.`,
  }));
  // JSON is valid YAML.
  writeFileSync(path, JSON.stringify({ rules: written }));
  return { path, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
