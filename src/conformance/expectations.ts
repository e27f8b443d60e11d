/** What an answer may be. Each answers with what is wrong: an empty list when nothing is. */
import type { Finding } from './check.ts';
import type { Exchange } from './target.ts';

/** 204 or 403, and nothing else. */
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
  const why = given
    ? 'the service does not accept the token that was given'
    : '--token or --bearer gives a token';
  return [{ expected: `${expected}; ${why}`, exchange }];
}

/** The verdict that a check of an operation may have: the end of a lease is no question. */
export function expectAnswerTo(exchange: Exchange): Finding[] {
  return exchange.operation === 'end' ? expectNoContent(exchange) : expectVerdict(exchange);
}

/** No success: Blazar takes only 204 for a yes, other clients every status from 200 to 299. */
export function expectRefusal(exchange: Exchange): Finding[] {
  const { answer } = exchange;
  return answer !== undefined && answer.status >= 300
    ? []
    : [{ expected: 'an answer that is no success: a status of 300 or more, such as 401', exchange }];
}

/** An answer to what is no request: no fault of the service, and no yes where there was a question. */
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
