/** A result as it is told: in sentences for people, as an object for programs. Nothing here can hold a token. */
import type { CheckResult } from './check.ts';
import type { Exchange } from './target.ts';

/** So many findings of one check are told; the others are as many of the same. */
const MAX_FINDINGS = 3;

/** `POST https://host/check-create: a lease of one host, 1234 bytes; Content-Type: application/json, …`. */
export function sentText({ url, what, bytes, headers }: Exchange): string {
  const names = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return `POST ${url}: ${what}, ${bytes} bytes; ${names.join(', ')}`;
}

/** `403 {"message": …}`, or why nothing came. */
export function cameText({ answer, excerpt, failure }: Exchange): string {
  return answer === undefined ? `no answer: ${failure}` : `${answer.status} ${excerpt}`.trim();
}

/** What there is to say of a check that failed: `[label, text]`, in the order in which it is read. */
export function detailsOf({ check, findings }: CheckResult): [label: string, text: string][] {
  const told = findings.slice(0, MAX_FINDINGS).flatMap(({ expected, exchange }): [string, string][] => [
    ['sent', sentText(exchange)],
    ['came', cameText(exchange)],
    ['expected', expected],
  ]);
  const more = findings.length - MAX_FINDINGS;
  return [
    ...told,
    ...(more > 0 ? [['more', `${more} further answers that are not as expected`] as [string, string]] : []),
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
