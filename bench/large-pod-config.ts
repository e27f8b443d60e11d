/** A request of SkyPilot with a pod_config of 2,000 lines. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './requests.ts';

/** After this line, more variables of the container may follow. */
const LAST_VARIABLE = '          value: http://proxy.example.org:3128\n';
const VARIABLES = 1000;

/** The body of a launch as SkyPilot 0.13 sends it. */
export const LAUNCH = readFileSync(join(ROOT, 'test/fixtures/skypilot-wire/launch-server.body'), 'utf8');

/** The same launch with additional lines in its pod_config, and a network for machines on AWS. */
export function largeLaunch(): string {
  const launch = JSON.parse(JSON.parse(LAUNCH)) as { skypilot_config: string };
  const variables = Array.from(
    { length: VARIABLES },
    (_, index) => `        - name: VARIABLE_${index}\n          value: value-${index}\n`,
  );
  const config = launch.skypilot_config.replace(LAST_VARIABLE, LAST_VARIABLE + variables.join(''));
  const skypilot_config = `${config}\naws:\n  vpc_names: research\n`;
  return JSON.stringify(JSON.stringify({ ...launch, skypilot_config }));
}
