/** A server with the recorded responses of a real Keystone, or others. */
import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { projectFile } from './files.ts';
import { type PolicyServer, policyServer, type ReceivedRequest } from './policy-server.ts';

export interface RecordedAnswer {
  readonly request: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const RECORDED = JSON.parse(
  readFileSync(projectFile('test/fixtures/keystone/token-answers.json'), 'utf8'),
) as Record<string, RecordedAnswer>;

/** The time of the responses, by their own account. Their tokens are valid for an hour. */
export const RECORDED_AT = Date.UTC(2026, 11, 1, 9);

/** A response of test/fixtures/keystone/token-answers.json. */
export function recordedAnswer(name: string): RecordedAnswer {
  const answer = RECORDED[name];
  if (answer === undefined) {
    throw new Error(`no answer "${name}" was recorded`);
  }
  return answer;
}

/** A response with a new token. `seconds`: its validity. */
export function tokenAnswer(token: string, seconds = 3600, name = 'token'): RecordedAnswer {
  const answer = recordedAnswer(name);
  const expires = new Date(RECORDED_AT + seconds * 1000).toISOString();
  return {
    ...answer,
    headers: { ...answer.headers, 'x-subject-token': token },
    body: answer.body.replace(/("expires_at": ?)"[^"]*"/, `$1"${expires}"`),
  };
}

/** The response about a validated token, for `validate`. */
export function validAnswer(name: string, token: string): RecordedAnswer {
  const answer = recordedAnswer(name);
  return {
    ...answer,
    headers: { ...answer.headers, 'x-subject-token': token, date: new Date(RECORDED_AT).toUTCString() },
  };
}

export type KeystoneAnswer = RecordedAnswer | ((response: ServerResponse) => void);

/** `answer`: by request, counted from 1. */
export async function recordedKeystone(
  answer: (request: ReceivedRequest, count: number) => KeystoneAnswer,
): Promise<PolicyServer> {
  const server = await policyServer((_request, response) => {
    const { requests } = server;
    const chosen = answer(requests.at(-1) as ReceivedRequest, requests.length);
    if (typeof chosen === 'function') {
      chosen(response);
    } else {
      const { connection: _, ...headers } = chosen.headers;
      response.writeHead(chosen.status, headers).end(chosen.body);
    }
  });
  return server;
}
