import junit, { type Builder } from 'junit-report-builder';
import { visibleXml } from '../base/visible-text.ts';
import type { CheckResult } from './check.ts';
import { cameText, detailsOf, sentText } from './report.ts';

/** Its types are those of the module that bundlers take; Node.js is given the builder itself. */
const builder = junit as unknown as Builder;

/** The results as a JUnit report: a test case for each check, with requests and answers. */
export function junitOf(results: readonly CheckResult[]): string {
  const report = builder.newBuilder();
  const seconds = results.reduce((sum, { milliseconds }) => sum + milliseconds, 0) / 1000;
  const suite = report.testSuite().name('blazar-enforcement conformance').time(seconds);
  for (const result of results) {
    const { check, findings, reason, exchanges, milliseconds } = result;
    const test = suite
      .testCase()
      .className('conformance')
      .name(`${check.id}: ${check.title}`)
      .time(milliseconds / 1000);
    if (result.result === 'skipped') {
      test.skipped().standardOutput(`skipped: ${reason}`);
      continue;
    }
    test.standardOutput(
      exchanges.map((exchange) => `${sentText(exchange)}\n→ ${cameText(exchange)}`).join('\n'),
    );
    const [finding] = findings;
    if (finding !== undefined) {
      const details = detailsOf(result).map(([label, text]) => `${label}: ${text}`);
      test
        .failure(`expected ${finding.expected}, came ${cameText(finding.exchange)}`)
        .stacktrace(details.join('\n'));
    }
  }
  return visibleXml(report.build());
}
