/** Checks of all responses of the run; they send nothing. */
import { announcesBody } from '../../http/call-error.ts';
import { type Check, type Finding, SOURCE } from '../check.ts';
import type { Exchange } from '../target.ts';

export const wholeRunChecks: readonly Check[] = [
  {
    id: 'message-is-text',
    title: 'every 403 to a valid request has its reason as text in message',
    protocol:
      'The body of a 403 may be a JSON object whose field message is the reason. Without it the user sees a generic sentence, and a body that is not an object breaks earlier releases of Blazar.',
    sources: [SOURCE.blazarDocs, SOURCE.duties, SOURCE.filter],
    run: ({ target }) => {
      const rejections = target.exchanges.filter(
        ({ valid, operation, answer }) => valid && operation !== 'end' && answer?.status === 403,
      );
      return rejections.length === 0
        ? { skipped: 'no lease was rejected; pass one with --deny-lease' }
        : among(rejections, ({ answer }) => !hasMessage(answer?.body ?? ''), EXPECTED_MESSAGE);
    },
  },
  {
    id: 'no-redirect',
    title: 'no answer is a redirect',
    protocol:
      'Any status other than 204 and 403 is a failure. Redirects are not followed, because they would pass on the token.',
    sources: [SOURCE.filter, SOURCE.blazarDocs],
    run: ({ target }) => among(target.exchanges, isRedirect, 'no redirect'),
  },
  {
    id: 'no-content',
    title: 'a 204 has no body',
    protocol:
      'A 204 ends after its headers, and has neither Transfer-Encoding nor a Content-Length above 0. Blazar ignores a body; clients that keep connections open take it for the next answer, or refuse this one.',
    sources: [SOURCE.noContent, SOURCE.blazarDocs],
    run: ({ target }) =>
      target.exchanges.some(({ answer }) => answer?.status === 204)
        ? among(target.exchanges, hasContent, 'a 204 without a body: strict HTTP clients refuse this one')
        : { skipped: 'nothing was answered with 204; pass a lease with --allow-lease' },
  },
  {
    id: 'no-stack-trace',
    title: 'no answer shows a stack trace',
    protocol: 'Users and logs see the answers of a service; a stack trace reveals its code.',
    sources: [SOURCE.duties, SOURCE.filter],
    run: ({ target }) =>
      among(
        target.exchanges,
        ({ answer }) => stackTraceIn(answer?.body ?? ''),
        'an answer without a stack trace',
      ),
  },
];

const EXPECTED_MESSAGE = 'a JSON object whose message is a text that is not empty';

function among(
  exchanges: readonly Exchange[],
  isWrong: (exchange: Exchange) => boolean,
  expected: string,
): Finding[] {
  return exchanges.filter(isWrong).map((exchange) => ({ expected, exchange }));
}

function isRedirect({ answer }: Exchange): boolean {
  return answer !== undefined && answer.status >= 300 && answer.status < 400;
}

function hasContent({ answer }: Exchange): boolean {
  return answer?.status === 204 && (answer.strayBytes || announcesBody(answer.headers));
}

function hasMessage(body: string): boolean {
  try {
    const value: unknown = JSON.parse(body);
    const message =
      typeof value === 'object' && value !== null && 'message' in value ? value.message : undefined;
    return typeof message === 'string' && message.trim() !== '';
  } catch {
    return false;
  }
}

/** A line break, as text, inside JSON, or in HTML. */
const BREAK = String.raw`(?:\r?\n|\\r?\\n|\\n|<br\s*/?>)`;
const INDENT = String.raw`(?:[ \t]|\\t|&nbsp;)*`;

/** Formats of stack traces in the usual languages of services. Bounded, since the text is untrusted. */
const TRACES: readonly RegExp[] = [
  // Python
  /Traceback \(most recent call last\)/,
  /File \\?(?:"|&quot;|&#34;)[^"\n]{1,300}\\?(?:"|&quot;|&#34;), line \d+/,
  // JavaScript, Java, Kotlin, C#: `at place (file.js:1:2)`, `at package.Class.method(File.java:1)`, `at A.B() in file:line 1`
  new RegExp(
    `${BREAK}${INDENT}at [^\\n<]{0,300}(?:[.][a-z]\\w*:\\d|node:[\\w/]+:\\d|:line \\d|[(]Native Method[)])`,
    'i',
  ),
  // Go, Rust
  /goroutine \d+ \[[a-z ,]+\]:/,
  /thread '[^']*' panicked at/,
  // Ruby, PHP
  /\.rb:\d+:in [`']/,
  /#\d+ [^\n<]{0,300}\.php\(\d+\)/,
];

/** Whether a body contains a stack trace. */
export function stackTraceIn(body: string): boolean {
  return TRACES.some((trace) => trace.test(body));
}
