/** The rules for pods and tasks that a configuration names: cases should see them, also if there is no case about a pod or a task. */
import type { Configuration } from '../../enforcement/configuration.ts';
import { podEnvironment } from '../../rules/pod/environment.ts';
import { readRules } from '../../rules/read-rules.ts';
import { taskEnvironment } from '../../rules/task/environment.ts';
import type { Coverage } from './coverage.ts';

/** What cannot be read is told by whoever reads it for a case. */
export function expectRules(configuration: Configuration, coverage: Coverage): void {
  const setting = (section: string, name: string) =>
    configuration.settings.find(({ option }) => option.section === section && option.name === name)?.value;
  const seen = coverage.of(configuration);
  const pods = setting('kubernetes', 'rules_path');
  if (typeof pods === 'string') {
    seen.rulesRead(readRules(pods, { pod: podEnvironment() }).rules.pod);
  }
  const tasks = setting('skypilot', 'rules_path');
  if (typeof tasks === 'string') {
    seen.rulesRead(readRules(tasks, { task: taskEnvironment() }).rules.task);
  }
}
