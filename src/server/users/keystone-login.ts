/** Login with Keystone: user, project, and the rights here. */
import { type Context, HttpError } from 'koa';
import { withinDeadline } from '../../base/deadline.ts';
import { errorText } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import type { ListedProject, LoginRefusal, UserPassword, UserScope } from '../../openstack/user-login.ts';
import type { HeldAuthenticator } from '../authentication/keystone-authenticators.ts';
import { stateOf } from '../request-state.ts';
import type { StoredKeystone, StoredProof } from './sessions/stored-session.ts';
import { keystoneCaller, rolesText } from './user-authenticator.ts';

/** The proof for a new session, or a message for the caller. `isWrong`: counts as a guess. */
export type LoginOutcome =
  | { readonly proof: StoredProof; readonly isWrong?: never }
  | { readonly status: 401 | 403 | 503; readonly message: string; readonly isWrong: boolean };

/** Maximum number of projects tried for one with a role that counts here, if the caller names none. */
const MAX_TRIED = 20;

const REFUSALS: Readonly<Record<LoginRefusal, string>> = {
  wrong:
    'Keystone does not accept this. Check user name, password and domain; the account may also be disabled or locked.',
  expired:
    'The password has expired. Change it, for example with "openstack user password set", and log in again.',
  'second-factor':
    'Keystone asks for a second factor, which cannot be sent from here. Get a token elsewhere, for example with "openstack token issue", and log in with it.',
};
const NOT_NOW = 'Keystone does not answer now. Please try again later.';
export const NO_TOKEN = 'This token is not accepted.';

/** `project`: its name or id; empty = the first with a role that counts here. */
export async function loginByPassword(
  ctx: Context,
  asked: UserPassword & { readonly project: string },
  logger: Logger,
): Promise<LoginOutcome> {
  return withKeystone(ctx, logger, async ({ login }, signal) => {
    const answer = await login.logIn(asked, { signal });
    if ('refusal' in answer) {
      return refused(REFUSALS[answer.refusal], { isWrong: answer.refusal === 'wrong' });
    }
    const projects = (await login.projects(answer.token, { signal })) ?? [];
    const isAny = asked.project === '';
    const eligible = projects.filter(
      ({ id, name }) => isAny || id === asked.project || name === asked.project,
    );
    if (!isAny && eligible.length === 0) {
      return refused('You have no project with this name or id.', { status: 403 });
    }
    const scopes: UserScope[] = eligible.slice(0, MAX_TRIED).map(({ id }) => ({ projectId: id }));
    for (const scope of isAny ? [...scopes, 'system' as const] : scopes) {
      const proof = await proofIn(ctx, answer.token, scope, signal);
      if (proof !== undefined) {
        return { proof };
      }
    }
    const isCut = isAny && eligible.length > MAX_TRIED;
    return refused(isCut ? notTried(ctx, eligible.length) : noRole(ctx), { status: 403 });
  });
}

/** With a token that the user got from Keystone. Invented ones wait where they do not hold up passwords. */
export async function loginByToken(ctx: Context, token: string, logger: Logger): Promise<LoginOutcome> {
  return withKeystone(ctx, logger, async ({ authenticator }) => {
    const valid = await authenticator.validated(token, ctx.ip);
    if (valid === undefined) {
      return refused(NO_TOKEN, { isWrong: true });
    }
    return keystoneCaller(valid, stateOf(ctx).generation.options) === undefined
      ? refused(noRole(ctx), { status: 403 })
      : { proof: { kind: 'keystone', userId: valid.user.id, scoped: token } };
  });
}

/** The same caller in another project, or in the system scope. */
export async function switchScope(
  ctx: Context,
  { unscoped }: StoredKeystone,
  scope: UserScope,
  logger: Logger,
): Promise<LoginOutcome> {
  return withKeystone(ctx, logger, async (_, signal) => {
    const proof = unscoped && (await proofIn(ctx, unscoped, scope, signal));
    return proof ? { proof } : refused(noRole(ctx), { status: 403 });
  });
}

/** What the caller may switch to; empty if the session cannot be switched. */
export interface Scopes {
  readonly projects: readonly ListedProject[];
  readonly hasSystem: boolean;
}

export async function scopesOf(
  ctx: Context,
  { unscoped }: StoredKeystone,
  logger: Logger,
): Promise<Scopes | Extract<LoginOutcome, { message: string }>> {
  return withKeystone(ctx, logger, async ({ login }, signal) => {
    const projects = unscoped && (await login.projects(unscoped, { signal }));
    return projects
      ? { projects, hasSystem: await login.hasSystemRole(unscoped, { signal }) }
      : { projects: [], hasSystem: false };
  });
}

async function proofIn(
  ctx: Context,
  unscoped: string,
  scope: UserScope,
  signal: AbortSignal,
): Promise<StoredKeystone | undefined> {
  const { keystone, options } = stateOf(ctx).generation;
  const scoped = await keystone?.login.scoped(unscoped, scope, { signal });
  // With the same check as later requests, so that the next request does not end the session.
  const valid = scoped === undefined ? undefined : await keystone?.authenticator.validated(scoped);
  return scoped === undefined || valid === undefined || keystoneCaller(valid, options) === undefined
    ? undefined
    : { kind: 'keystone', userId: valid.user.id, scoped, unscoped };
}

/** Within the deadline of the service. Failures become a message; their cause is logged. */
async function withKeystone<Result>(
  ctx: Context,
  logger: Logger,
  work: (keystone: HeldAuthenticator, signal: AbortSignal) => Promise<Result>,
): Promise<Result | Extract<LoginOutcome, { message: string }>> {
  const { generation, requestId } = stateOf(ctx);
  const { keystone, options } = generation;
  if (keystone === undefined) {
    return refused(NO_TOKEN, { isWrong: true });
  }
  try {
    return await withinDeadline(options.deadline, ({ signal }) => work(keystone, signal));
  } catch (thrown) {
    if (!(thrown instanceof HttpError)) {
      const facts = { request_id: requestId, error: errorText(thrown) };
      logger.warn(facts, 'Keystone could not be asked for a login');
    }
    return refused(NOT_NOW, { status: 503 });
  }
}

export function refused(
  message: string,
  { status = 401, isWrong = false }: { status?: 401 | 403 | 503; isWrong?: boolean } = {},
) {
  return { status, message, isWrong };
}

function noRole(ctx: Context): string {
  return `You have none of the roles that count here, in a project or in the system: ${rolesText(stateOf(ctx).generation.options)}.`;
}

function notTried(ctx: Context, projects: number): string {
  return `None of the first ${MAX_TRIED} of your ${projects} projects gives you a role that counts here: ${rolesText(stateOf(ctx).generation.options)}. Enter the name or id of another project.`;
}
