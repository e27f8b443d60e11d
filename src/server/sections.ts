import { kubernetesSection } from '../kubernetes/options.ts';
import { ledgerSection } from '../ledger/options.ts';
import type { SectionProblem } from '../option-groups.ts';
import { type SkypilotOptions, skypilotSection } from '../skypilot/options.ts';
import { serviceSection } from './options.ts';
import { OWN_PATHS } from './own-paths.ts';

/** What the configuration is asked for besides `[enforcement]`, by the service and by whoever looks at its configuration. */
export const SECTIONS = [
  serviceSection,
  ledgerSection,
  { ...skypilotSection, check: pathProblems },
  kubernetesSection,
] as const;

function pathProblems({ path }: SkypilotOptions): SectionProblem[] {
  return OWN_PATHS.includes(path)
    ? [
        {
          option: 'path',
          message: `expected a path of its own, got ${path}, where the service answers already`,
        },
      ]
    : [];
}
