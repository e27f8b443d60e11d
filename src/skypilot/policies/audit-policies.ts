/** The names in `audit_policies`, and what an audited policy would have done. */
import { nearestName } from '../../config/nearest.ts';
import type { ExtensionProblem } from '../../config/option-groups.ts';
import { showText } from '../../config/secret.ts';
import type { SkypilotOptions } from '../options.ts';

const OPTION = 'audit_policies';

/** `./policies/my-policy.js#MyPolicy` → `MyPolicy`; the name of an included policy is returned unchanged. */
export function classNameOf(specifier: string): string {
  return specifier.slice(specifier.lastIndexOf('#') + 1);
}

/** Every mistake in `audit_policies`, and a warning for each policy that is not enforced. */
export function auditProblems({
  admin_policies,
  audit_policies,
}: Pick<SkypilotOptions, 'admin_policies' | 'audit_policies'>): ExtensionProblem[] {
  const policies = [...new Set(admin_policies.map(classNameOf))];
  const audited = new Set<string>();
  const problems: ExtensionProblem[] = [];
  const report = (message: string, severity: 'error' | 'warning' = 'error') =>
    problems.push({ severity, option: OPTION, message });
  for (const name of audit_policies) {
    if (audited.has(name)) {
      report(`${showText(name)} is named twice`);
    } else if (policies.includes(name)) {
      report(`${name} is tried, not enforced: it rejects and changes no request`, 'warning');
    } else {
      const className = classNameOf(name);
      report(
        name !== className && policies.includes(className)
          ? `expected the name of a class, got ${showText(name)}: write ${className}`
          : `there is no policy ${showText(name)} in admin_policies${nearestName(className, policies)}`,
      );
    }
    audited.add(name);
  }
  if (policies.length > 0 && policies.every((name) => audited.has(name))) {
    report('no policy is enforced: every request is allowed as it is', 'warning');
  }
  return problems;
}

/** The answer of a policy, as far as a sentence about it needs. */
export interface TriedOutcome {
  readonly policy: string;
  readonly allowed: boolean;
  readonly message: string | null;
  readonly failed: boolean;
  readonly changed: boolean;
}

/** What an audited policy would have done, in a sentence; `undefined` if it allowed the request as it was. */
export function auditWarning({
  policy,
  allowed,
  message,
  failed,
  changed,
}: TriedOutcome): string | undefined {
  const tried = `${policy} (tried, not enforced)`;
  if (failed) {
    return `${tried} failed.`;
  }
  if (!allowed) {
    return `${tried} would have rejected: ${message}`;
  }
  return changed ? `${tried} would have changed the request.` : undefined;
}
