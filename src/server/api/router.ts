/** Serves all routes of the API with the same order of checks and the same error format. */
import { finished, Readable } from 'node:stream';
import Router from '@koa/router';
import type { Context } from 'koa';
import type { z } from 'zod';
import { yieldToEventLoop } from '../../base/yield-to-event-loop.ts';
import { kindOf } from '../../lease/request.ts';
import { EXACT } from '../own-paths.ts';
import { readJson, readText } from '../protocols/read-body.ts';
import { bodyLimit, stateOf } from '../request-state.ts';
import { type Caller, may } from '../users/caller.ts';
import type { UserAuthenticator } from '../users/user-authenticator.ts';
import type { UserLimiter } from '../users/user-limiter.ts';
import { type ApiAnswer, ApiError, type ApiRoute, NOT_ALLOWED } from './route.ts';

export interface ApiParts {
  readonly users: UserAuthenticator;
  readonly line: UserLimiter;
}

/** The path in the syntax of the router: `{name}` becomes `:name`. */
export function routerPath(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1');
}

export function apiRoutes(routes: readonly ApiRoute[], parts: ApiParts): Router {
  const router = new Router(EXACT);
  for (const entry of routes) {
    router.register(routerPath(entry.path), [entry.method], (ctx: Context) => serve(ctx, entry, parts));
  }
  return router;
}

async function serve(ctx: Context, entry: ApiRoute, { users, line }: ApiParts): Promise<void> {
  stateOf(ctx).route = entry.path;
  ctx.set('Cache-Control', 'no-store');
  const caller = await callerOf(ctx, entry, users);
  const params: Readonly<Record<string, string>> = ctx.params ?? {};
  if (!may(caller, entry.action, params.project_id)) {
    ctx.throw(403, NOT_ALLOWED);
  }
  const { generation, requestId } = stateOf(ctx);
  const query = parsedQuery(ctx, entry.query);
  const received = await bodyOf(ctx, entry);
  const isEstimate = entry.action === 'estimate';
  const answer = await line.run(
    generation,
    caller,
    async (deadline) => {
      if (isEstimate) {
        await yieldToEventLoop();
      }
      return entry.answer({
        caller,
        params,
        query,
        body: received(),
        generation,
        requestId,
        deadline,
        header: (name) => ctx.get(name),
      });
    },
    { isEstimate },
  );
  send(ctx, answer);
}

/** Sessions authorize only reading: a cross-site request would carry the cookie, but no token. */
async function callerOf(ctx: Context, { method }: ApiRoute, users: UserAuthenticator): Promise<Caller> {
  const byToken = await users.byToken(ctx);
  const caller = byToken ?? (method === 'GET' ? await users.bySession(ctx) : undefined) ?? users.anonymous;
  return caller ?? ctx.throw(401, 'expected a valid token in the header X-Auth-Token');
}

function parsedQuery(ctx: Context, schema: z.ZodType | undefined): unknown {
  const query = new URLSearchParams(ctx.querystring);
  const names = [...query.keys()];
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) {
    throw new ApiError(400, 'expected each parameter once', { field: twice });
  }
  if (schema === undefined) {
    if (names[0] !== undefined) {
      throw new ApiError(400, 'expected no parameters', { field: names[0] });
    }
    return undefined;
  }
  return checked(schema, Object.fromEntries(query));
}

/** Reads the body, and returns its check. Text is passed on unchecked: the schema describes JSON. */
async function bodyOf(ctx: Context, { body }: ApiRoute): Promise<() => unknown> {
  if (body === undefined) {
    return () => undefined;
  }
  const texts = Object.keys(body.texts ?? {});
  if (texts.length > 0 && ctx.is(texts)) {
    const text = await readText(ctx.req, bodyLimit(ctx), texts);
    return () => text;
  }
  if (texts.length > 0 && !ctx.is('application/json')) {
    ctx.throw(415, `expected a body of type application/json or ${texts.join(' or ')}`);
  }
  const json = await readJson(ctx.req, bodyLimit(ctx));
  return () => checked(body.schema, json);
}

/** `undefined` = as zod says it. */
function inPlainWords(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code === 'unrecognized_keys') {
    return 'unknown name';
  }
  const expected = expectedBy(issue);
  if (expected.length === 0) {
    return undefined;
  }
  return issue.input === undefined
    ? 'required'
    : `expected ${expected.join(' or ')}, got ${kindOf(issue.input)}`;
}

/** Types and values; for a choice of types all of them. */
function expectedBy(issue: z.core.$ZodRawIssue | z.core.$ZodIssue): readonly string[] {
  switch (issue.code) {
    case 'invalid_type':
      return [issue.expected];
    case 'invalid_value':
      return issue.values.map(String);
    case 'invalid_union':
      return issue.errors.flat().flatMap(expectedBy);
    default:
      return [];
  }
}

/** Throws the first mistake, with its field. */
function checked(schema: z.ZodType, value: unknown): unknown {
  const result = schema.safeParse(value, { error: inPlainWords });
  if (result.success) {
    return result.data;
  }
  const [issue] = result.error.issues;
  const keys = issue?.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : [];
  const field = [...(issue?.path ?? []), ...keys].map(String).join('.').slice(0, 255);
  throw new ApiError(400, issue?.message ?? 'expected another value', { field });
}

function send(ctx: Context, { status = 200, headers = {}, json, content }: ApiAnswer): void {
  ctx.set(headers);
  ctx.status = status;
  if (content !== undefined) {
    ctx.type = content.type;
    ctx.body = typeof content.text === 'string' ? content.text : heldOpen(ctx, content.text);
  } else if (json !== undefined) {
    ctx.body = json;
  }
}

/** A text that is still read from the ledger while it is sent: a reload meanwhile must not close the ledger. */
function heldOpen(ctx: Context, text: AsyncIterable<string>): Readable {
  const { generation } = stateOf(ctx);
  generation.enter();
  finished(ctx.res, () => generation.leave());
  return Readable.from(text);
}
