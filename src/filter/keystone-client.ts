import type { HttpAnswer, HttpCallOptions, HttpClient } from '../http/contract.ts';
import type { ServiceTokens } from './services.ts';

/**
 * A client that sends a token of Keystone as `X-Auth-Token`. After a 401 it sends the call once more, with a new token if there is
 * one: a service that answers 401 has not processed the call. A token that the service echoes is hidden in the answer. Calls also
 * reject with what `token` throws.
 */
export function withKeystoneToken(client: HttpClient, tokens: ServiceTokens): HttpClient {
  const ask = async (
    options: HttpCallOptions = {},
    call: (options: HttpCallOptions) => Promise<HttpAnswer>,
  ): Promise<HttpAnswer> => {
    const attempt = async (token: string) => {
      const answer = await call({ ...options, headers: { ...options.headers, 'x-auth-token': token } });
      return answer.body.includes(token)
        ? { ...answer, body: answer.body.replaceAll(token, '****') }
        : answer;
    };
    const first = await tokens.token(options);
    const answer = await attempt(first);
    if (answer.status !== 401) {
      return answer;
    }
    tokens.refused(first);
    const second = await tokens.token(options);
    return second === first ? answer : attempt(second);
  };
  return {
    postJson: (url, json, options) => ask(options, (call) => client.postJson(url, json, call)),
    get: (url, options) => ask(options, (call) => client.get(url, call)),
    close: () => client.close(),
  };
}
