/** Answers of other services that a case gives. No connection is opened. */
import type { SharedServices } from '../../filter/services.ts';
import { HttpCallError } from '../../http/call-error.ts';
import type { HttpAnswer, HttpClient } from '../../http/contract.ts';
import type { GivenAnswer } from './lease-case.ts';

export interface GivenServices {
  readonly http: SharedServices['http'];
  /** The addresses that were called and have no answer, without credentials and parameters. */
  readonly unanswered: ReadonlySet<string>;
}

/** By address, or by its path. */
export function givenServices(answers: ReadonlyMap<string, GivenAnswer>): GivenServices {
  const unanswered = new Set<string>();
  const call = async (address: string): Promise<HttpAnswer> => {
    const { origin, pathname } = new URL(address);
    const shown = `${origin}${pathname}`;
    const given = answers.get(address) ?? answers.get(shown) ?? answers.get(pathname);
    if (given === undefined) {
      unanswered.add(shown);
      throw new HttpCallError('connect', `${shown}: the case gives no answer of this service`);
    }
    if (given.error !== undefined) {
      throw new HttpCallError(given.error, `${shown}: ${given.error}, as the case says`);
    }
    const { body = '' } = given;
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    return { status: given.status ?? (text === '' ? 204 : 200), body: text, headers: {} };
  };
  const client: HttpClient = { postJson: call, get: call, close: async () => {} };
  return { http: { createClient: () => client }, unanswered };
}
