/** The routes of budgets on a ledger, asked by people of a test. */
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import type { Generation } from '../../../src/server/configuration/generation.ts';
import { type Caller, tokenCaller } from '../../../src/server/users/caller.ts';
import { DIALECTS, newLedgers } from '../../support/ledgers.ts';
import type { RecordingLogger } from '../../support/logger.ts';
import { member, servedGeneration, usersByToken, type Values } from '../served-generation.ts';

/** By their tokens. Mona and Max manage `climate`, and Mona is a member of `physics`; Meg is a member of `climate`. */
export const USERS: Readonly<Record<string, Caller>> = {
  operator: tokenCaller('operator', 'operator token'),
  reader: tokenCaller('reader', 'reader token'),
  mona: member('mona', { climate: true, physics: false }),
  max: member('max', { climate: true }),
  meg: member('meg', { climate: false }),
};
export type Token = 'operator' | 'reader' | 'mona' | 'max' | 'meg';

export interface Told {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: what a test expects of it says what it is
  readonly json: any;
}

export interface Sent {
  readonly etag?: string | undefined;
  readonly body?: unknown;
  /** Instead of JSON. */
  readonly text?: { readonly type: string; readonly text: string | Uint8Array };
}

export interface BudgetFixture {
  readonly url: string;
  readonly connection: string;
  readonly generation: Generation;
  readonly logger: RecordingLogger;
  ask(who: Token, method: string, path: string, sent?: Sent): Promise<Told>;
}

/** Call it at the top of a file. One ledger and one service for each database. */
export function budgetFixtures(): (dialect: (typeof DIALECTS)[number]) => BudgetFixture {
  const newLedger = newLedgers();
  const fixtures = new Map<string, BudgetFixture>();
  const closing: (() => Promise<void>)[] = [];
  beforeAll(async () => {
    for (const dialect of DIALECTS) {
      const { fixture, close } = await served(await newLedger(dialect));
      fixtures.set(dialect, fixture);
      closing.push(close);
    }
  });
  afterAll(() => Promise.all(closing.map((close) => close())));
  return (dialect) => {
    const fixture = fixtures.get(dialect);
    if (fixture === undefined) {
      throw new Error('the service is there for tests only');
    }
    return fixture;
  };
}

/** Another service on the ledger at `connection`, until the test is over. */
export async function serving(connection: string, values: Values = {}): Promise<BudgetFixture> {
  const { fixture, close } = await served(connection, values);
  onTestFinished(close);
  return fixture;
}

async function served(connection: string, values: Values = {}) {
  const users = usersByToken(USERS);
  const { close, ...service } = await servedGeneration({ connection, values, users, hasStores: true });
  const fixture: BudgetFixture = {
    ...service,
    connection,
    async ask(who, method, path, { etag, body, text } = {}) {
      const sent = text?.text ?? (body === undefined ? undefined : JSON.stringify(body));
      const answer = await fetch(service.url + path, {
        method,
        headers: {
          'X-Auth-Token': who,
          ...(sent !== undefined && { 'Content-Type': text?.type ?? 'application/json' }),
          ...(etag !== undefined && { 'If-Match': etag }),
        },
        ...(sent !== undefined && { body: sent as BodyInit }),
      });
      const answered = await answer.text();
      const isJson = answer.headers.get('Content-Type')?.startsWith('application/json') && answered !== '';
      return {
        status: answer.status,
        headers: answer.headers,
        text: answered,
        json: isJson ? JSON.parse(answered) : undefined,
      };
    },
  };
  return { fixture, close };
}

/** A budget for the year 2027, as the API takes it. Default: 100 for the whole project. */
export function wanted(projectId: string, more: Readonly<Record<string, unknown>> = {}) {
  return {
    project_id: projectId,
    valid_from: '2027-01-01T00:00:00Z',
    valid_until: '2028-01-01T00:00:00Z',
    amount: '100',
    reason: 'the grant',
    ...more,
  };
}
