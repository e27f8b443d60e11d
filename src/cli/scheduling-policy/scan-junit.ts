/** A scan as a JUnit report: a test case for each owner of pods. */
import junit, { type Builder } from 'junit-report-builder';
import { visibleXml } from '../../base/visible-text.ts';
import type { Scanned } from '../../kubernetes/cluster/scan/findings.ts';
import { formatReason } from '../../kubernetes/policies/rules/reason.ts';

/** Its types are those of the module that bundlers take; Node.js is given the builder itself. */
const builder = junit as unknown as Builder;

export function scanJunit(owners: readonly Scanned[]): string {
  const report = builder.newBuilder();
  const suite = report.testSuite().name('blazar-enforcement scheduling-policy scan');
  for (const { namespace, source, owner, count, refusals } of owners) {
    const what = source === 'pod' ? `pods of ${owner.kind}` : `template of ${owner.kind}`;
    const test = suite.testCase().className(namespace).name(`${what} ${owner.name}`);
    if (refusals.length > 0) {
      const refused = refusals.reduce((sum, one) => sum + one.count, 0);
      test
        .failure(
          source === 'pod' ? `${refused} of ${count} pods would be refused` : 'its pods would be refused',
        )
        .stacktrace(
          refusals
            .map(
              (one) =>
                `${one.count} for ${one.user}, such as ${one.names.join(', ')}:\n${one.reasons.map((reason) => `  ${formatReason(reason)}`).join('\n')}`,
            )
            .join('\n'),
        );
    }
  }
  return visibleXml(report.build());
}
