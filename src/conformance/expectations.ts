/** What an answer may be. Each returns the findings; empty = the answer is as expected. */
import type { Finding } from './check.ts';
import type { Exchange } from './target.ts';

export function expectVerdict(exchange: Exchange): Finding[] {
  return expectStatus(exchange, [204, 403], 'the status 204 or 403');
}

export function expectNoContent(exchange: Exchange): Finding[] {
  return expectStatus(exchange, [204], 'the status 204');
}

/** One of these statuses; `expected` says so in words. */
export function expectStatus(exchange: Exchange, statuses: readonly number[], expected: string): Finding[] {
  const { answer, headers } = exchange;
  if (answer !== undefined && statuses.includes(answer.status)) {
    return [];
  }
  if (answer?.status !== 401) {
    return [{ expected, exchange }];
  }
  const given = 'X-Auth-Token' in headers || 'Authorization' in headers;
  const why = given ? 'the service does not accept the token' : 'pass a token with --token or --bearer';
  return [{ expected: `${expected}; ${why}`, exchange }];
}

/** 204 or 403, but 204 for the end of a lease, which is a notification. */
export function expectAnswerTo(exchange: Exchange): Finding[] {
  return exchange.operation === 'end' ? expectNoContent(exchange) : expectVerdict(exchange);
}

/** Not a success: Blazar takes only 204 as allowed, other clients any status from 200 to 299. */
export function expectRefusal(exchange: Exchange): Finding[] {
  const { answer } = exchange;
  return answer !== undefined && answer.status >= 300
    ? []
    : [{ expected: 'a status of 300 or more, such as 401', exchange }];
}

/** The answer to an invalid request: no server error, and not allowed if it asks for something. */
export function expectComplaint(exchange: Exchange): Finding[] {
  const { answer, operation } = exchange;
  const isYes = operation !== 'end' && answer?.status === 204;
  return answer !== undefined && answer.status < 500 && !isYes
    ? []
    : [
        {
          expected: `an answer with a status below 500${operation === 'end' ? '' : ', and not 204'}`,
          exchange,
        },
      ];
}
