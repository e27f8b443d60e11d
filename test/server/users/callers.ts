/** People who ask with headers, and what is answered about them. */
import { createServer } from 'node:http';
import Koa from 'koa';
import { onTestFinished } from 'vitest';
import { requireConfiguration } from '../../../src/enforcement/configuration.ts';
import { createSharedServices } from '../../../src/enforcement/services.ts';
import { keystoneOptions } from '../../../src/openstack/keystone-options.ts';
import type { UserTokens } from '../../../src/server/authentication/credentials.ts';
import { KeystoneAuthenticators } from '../../../src/server/authentication/keystone-authenticators.ts';
import { AcceptedTokens } from '../../../src/server/authentication/protocols.ts';
import { serviceOptions } from '../../../src/server/configuration/options.ts';
import { SECTIONS } from '../../../src/server/configuration/sections.ts';
import { FixedTokens } from '../../../src/server/users/fixed-tokens.ts';
import { Sessions } from '../../../src/server/users/sessions/sessions.ts';
import { createUserAuthenticator } from '../../../src/server/users/user-authenticator.ts';
import { WrongTokens } from '../../../src/server/users/wrong-tokens.ts';
import { listen } from '../../support/listening.ts';
import { recordingLogger } from '../../support/logger.ts';

export interface Asked {
  readonly status: number;
  /** The caller, or the message. */
  readonly body: Record<string, unknown>;
  readonly headers: Headers;
}

export interface Configured extends Partial<UserTokens> {
  readonly blazar?: readonly string[];
  readonly service?: Readonly<Record<string, unknown>>;
  /** The account for Keystone. Default: `keystone_auth` is off. */
  readonly keystone?: object;
}

/** Answers each request with the caller who asks it: by a token, or else anonymous. */
export async function callersOf(configured: Configured) {
  const { blazar = [], operator = [], reader = [], metrics = [], service, keystone } = configured;
  const ofBlazar = new AcceptedTokens(blazar);
  const tokens = new FixedTokens(ofBlazar, { operator, reader, metrics });
  const options = serviceOptions.parse({ keystone_auth: keystone !== undefined, ...service });
  const counted: string[] = [];
  const logger = recordingLogger();
  const authenticators = new KeystoneAuthenticators(createSharedServices({ logger }), {
    countToken: (outcome, from) => counted.push(`${outcome} ${from}`),
    tokenValidated: () => {},
  });
  const held = await authenticators.open(1, options, keystoneOptions.parse({ ...keystone }));
  ofBlazar.requiredAnyway = held !== undefined;
  onTestFinished(() => held?.release());
  const configuration = await requireConfiguration({ environment: {}, configFiles: [] }, SECTIONS);
  const sessions = new Sessions({
    logger,
    ownerOf: () => {
      throw new Error('nobody has a session here');
    },
  });
  const users = createUserAuthenticator({
    tokens,
    sessions,
    wrong: new WrongTokens(),
    configuration: () => configuration,
  });
  const app = new Koa();
  app.silent = true;
  app.use(async (ctx) => {
    ctx.state = { generation: { options, keystone: held } };
    ctx.body = (await users.byToken(ctx)) ?? users.anonymous ?? ctx.throw(401, 'expected a token');
  });
  const { port } = await listen(createServer(app.callback()));
  const ask = async (headers: Record<string, string> = {}): Promise<Asked> => {
    const answer = await fetch(`http://127.0.0.1:${port}/`, { headers });
    const text = await answer.text();
    const isJson = answer.headers.get('content-type')?.startsWith('application/json');
    const body = isJson ? JSON.parse(text) : { message: text };
    return { status: answer.status, body, headers: answer.headers };
  };
  return { ask, tokens, counted, logger };
}
