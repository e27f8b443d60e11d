/** The console on a ledger, visited by people of a test: a header, or the cookie `caller`, says who. */
import type Koa from 'koa';
import type { Generation } from '../../../src/server/configuration/generation.ts';
import { assetRoutes } from '../../../src/server/console/assets.ts';
import { CONSOLE_PAGES } from '../../../src/server/console/pages.ts';
import { consoleRoutes } from '../../../src/server/console/router.tsx';
import { DecisionRecorder } from '../../../src/server/decisions/recorder.ts';
import { type Caller, tokenCaller } from '../../../src/server/users/caller.ts';
import type { RecordingLogger } from '../../support/logger.ts';
import { member, servedGeneration, type Values } from '../served-generation.ts';

/** Mona manages `climate`, and Meg is a member of it. */
export const USERS = {
  operator: tokenCaller('operator', 'operator token'),
  reader: tokenCaller('reader', 'reader token'),
  mona: member('mona', { climate: true }),
  meg: member('meg', { climate: false }),
} as const;
export type Name = keyof typeof USERS;

export interface ConsoleFixture {
  readonly url: string;
  readonly generation: Generation;
  readonly recorder: DecisionRecorder;
  readonly logger: RecordingLogger;
  get(who: Name, path: string): Promise<Seen>;
  /** A form, with the `csrf` of the session unless it has one. */
  send(who: Name, path: string, fields: Readonly<Record<string, string>>): Promise<Seen>;
  close(): Promise<void>;
}

export interface Seen {
  readonly status: number;
  readonly html: string;
  /** Where a form leads to; empty = nowhere else. */
  readonly location: string;
}

/** `hasStores`: whether decisions are stored. */
export async function consoleOn(
  connection: string,
  values: Values = {},
  now?: () => string,
  hasStores = false,
): Promise<ConsoleFixture> {
  const callerOf = (name: string): Caller | undefined => USERS[name as Name];
  const users = {
    byToken: async (ctx: Koa.Context) => callerOf(ctx.get('X-Auth-Token')),
    bySession: async (ctx: Koa.Context) => callerOf(ctx.cookies.get('person') ?? ''),
    anonymous: undefined,
    csrfOf: (ctx: Koa.Context) => (ctx.cookies.get('person') ? `csrf of ${ctx.cookies.get('person')}` : ''),
  };
  let recorder: DecisionRecorder | undefined;
  const service = await servedGeneration({
    connection,
    values,
    now,
    users,
    hasStores,
    routes: (parts) => {
      recorder = new DecisionRecorder(parts.metrics.decisions, undefined);
      return [
        assetRoutes(),
        consoleRoutes(CONSOLE_PAGES, {
          ...parts,
          recorder,
          isDraining: () => false,
          generations: { current: parts.generation, problems: [] },
          showLogin: (ctx) => ctx.throw(403, 'log in'),
        }),
      ];
    },
  });
  if (recorder === undefined) {
    throw new Error('the console was not served');
  }
  const seen = async (path: string, init: RequestInit): Promise<Seen> => {
    const answer = await fetch(service.url + path, { redirect: 'manual', ...init });
    return {
      status: answer.status,
      html: await answer.text(),
      location: answer.headers.get('Location') ?? '',
    };
  };
  return {
    ...service,
    recorder,
    get: (who, path) => seen(path, { headers: { Cookie: `person=${who}` } }),
    send: (who, path, fields) =>
      seen(path, {
        method: 'POST',
        body: new URLSearchParams({ csrf: `csrf of ${who}`, ...fields }),
        headers: { Cookie: `person=${who}` },
      }),
  };
}
