import type { Check } from './check.ts';
import { authorChecks } from './checks/author.ts';
import { commitChecks } from './checks/commits.ts';
import { endChecks } from './checks/ends.ts';
import { formChecks } from './checks/forms.ts';
import { loadChecks } from './checks/load.ts';
import { repetitionChecks } from './checks/repetitions.ts';
import { resourceTypeChecks } from './checks/resource-types.ts';
import { robustnessChecks } from './checks/robustness.ts';
import { tokenChecks } from './checks/tokens.ts';
import { wholeRunChecks } from './checks/whole-run.ts';

/** All checks, in the order in which they are run. Those of the whole run look back at the others. */
export const CHECKS: readonly Check[] = [
  ...authorChecks,
  ...resourceTypeChecks,
  ...formChecks,
  ...endChecks,
  ...commitChecks,
  ...repetitionChecks,
  ...tokenChecks,
  ...robustnessChecks,
  ...loadChecks,
  ...wholeRunChecks,
];
