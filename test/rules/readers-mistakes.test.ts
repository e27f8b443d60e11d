/** Mistakes of somebody who knows Blazar and not CEL: each error says what was meant. */
import { expect, it } from 'vitest';
import { formatProblem } from '../../src/base/errors.ts';
import { sectionProblems } from '../../src/rules/section-problems.ts';
import { temporaryFile } from '../support/files.ts';
import { rows } from '../support/rows.ts';

it.for(
  rows`
    hours(lease) = 48.0 → :25: rule r: allow, at create: compare with "==", not with "="
    hours(lease) <= 48.0 and 1 < 2 → write "&&", not "and"
    hours(lease) <= 48.0 OR 1 < 2 → write "||", not "or"
    context.project_id not in ["a"] → write "!(x in list)"
    not (hours(lease) > 48.0) → write "!(…)", not "not (…)"
    lease.name is "x" → compare with "==", not with "is"
    lease.name != “x” → write straight quotes
    lease.name != ‘x’ → write straight quotes
    lease.duration <= 48 → :18: rule r: allow, at create: Lease has no attribute "duration"; write hours(lease)
    days(lease) <= 2 → write hours(lease), and 48.0 for two days
    lease.end_date - lease.start_date <= 48 → write duration("48h"), or hours(lease) <= 48.0
    lease.start_date < now + 7d → duration("48h")
    lease.start_date > 2026-12-20 → write timestamp("2026-12-20T00:00:00Z")
    lease.project_id == "climate" → write context.project_id
    context.project_id == climate → nothing is called "climate"; put a text in quotes
    reservations.all(r, r.gpu == "False") → write property(r, "gpu")
    reservations.all(r, property(r, "$gpu") != "True") → :32: rule r: allow, at create: write the property without "$": property(r, "gpu")
    size(lease, "host") <= 2 → :24: rule r: "host" is not a resource type; the nearest right name is "physical:host"
    !reservations.exists(r, r.resource_type == "physical_host") → "physical_host" is not a resource type
    reservations.all(r, r.resource_type in ["network", "floatingip"]) → : rule r: "floatingip" is not a resource type; the nearest right name is "virtual:floatingip"
    !overlaps(lease, "2027-01-03", "2026-12-20") → write the earlier time first
  `,
)('of %s', ([allow, meant]) => {
  const written = allow.startsWith('!') ? `'${allow}'` : allow;
  const file = temporaryFile(
    'rules.yaml',
    `rules:\n  - name: r\n    allow: ${written}\n    message: No.\n    on: create\n`,
  );
  const problems = sectionProblems(file, ['create', 'update']).filter(({ severity }) => severity === 'error');
  expect(problems.map(formatProblem).join('\n')).toContain(meant);
});
