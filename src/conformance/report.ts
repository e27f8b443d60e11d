/** Results as text for display and as objects for programs. They never contain a token. */

import junit, { type Builder } from 'junit-report-builder';
import { inCdata, visibleXml } from '../base/visible-text.ts';
import type { CheckResult } from './check.ts';
import type { Exchange } from './target.ts';

/** Maximum number of findings printed per check; further ones are usually the same. */
const MAX_FINDINGS = 3;

/** `POST https://host/check-create: a lease of one host, 1234 bytes; Content-Type: application/json, …`. */
export function sentText({ url, what, bytes, headers }: Exchange): string {
  const names = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return `POST ${url}: ${what}, ${bytes} bytes; ${names.join(', ')}`;
}

/** `403 {"message": …}`, or why there is no response. */
export function receivedText({ answer, excerpt, failure }: Exchange): string {
  return answer === undefined ? `no answer: ${failure}` : `${answer.status} ${excerpt}`.trim();
}

/** The details of a failed check: `[label, text]`, in reading order. */
export function detailsOf({ check, findings }: CheckResult): [label: string, text: string][] {
  const told = findings.slice(0, MAX_FINDINGS).flatMap(({ expected, exchange }): [string, string][] => [
    ['sent', sentText(exchange)],
    ['came', receivedText(exchange)],
    ['expected', expected],
  ]);
  const more = findings.length - MAX_FINDINGS;
  return [
    ...told,
    ...(more > 0 ? [['more', `${more} more unexpected answers`] as [string, string]] : []),
    ['protocol', check.protocol],
    ['source', check.sources.join('; ')],
  ];
}

/** One line of `--format json`. */
export function jsonOf({ check, result, reason, findings, exchanges, milliseconds }: CheckResult) {
  return {
    check: check.id,
    title: check.title,
    result,
    reason,
    problems: findings.map(({ expected, exchange }) => ({ expected, ...jsonOfExchange(exchange) })),
    exchanges: exchanges.map(jsonOfExchange),
    protocol: check.protocol,
    sources: check.sources,
    milliseconds,
  };
}

function jsonOfExchange({ url, what, bytes, headers, answer, excerpt, failure, milliseconds }: Exchange) {
  return {
    sent: { method: 'POST', url, headers, body: what, bytes },
    came: answer === undefined ? { error: failure } : { status: answer.status, body: excerpt },
    milliseconds,
  };
}

/** The types describe the module for bundlers; in Node.js the import is the builder itself. */
export const builder = junit as unknown as Builder;

/** The results as a JUnit report: a test case per check, with requests and responses. */
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
    const sent = exchanges.map((exchange) => `${sentText(exchange)}\n→ ${receivedText(exchange)}`);
    test.standardOutput(inCdata(sent.join('\n')));
    const [finding] = findings;
    if (finding !== undefined) {
      const details = detailsOf(result).map(([label, text]) => `${label}: ${text}`);
      test
        .failure(`expected ${finding.expected}, came ${receivedText(finding.exchange)}`)
        .stacktrace(inCdata(details.join('\n')));
    }
  }
  return visibleXml(report.build());
}
