/** Serves the pages of the console: one order of checks for all of them, and one form of errors. */
import Router from '@koa/router';
import { type Context, HttpError } from 'koa';
import { OverloadedError } from '../../base/concurrency-limiter.ts';
import { errorText, type Problem } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import { ApiError } from '../api/route.ts';
import { routerPath } from '../api/router.ts';
import type { Generation } from '../configuration/generation.ts';
import type { DecisionRecorder } from '../decisions/recorder.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { EXACT } from '../own-paths.ts';
import { stateOf } from '../request-state.ts';
import { type Caller, may } from '../users/caller.ts';
import { isCsrf } from '../users/sessions/sessions.ts';
import type { UserAuthenticator } from '../users/user-authenticator.ts';
import type { UserLimiter } from '../users/user-limiter.ts';
import { ErrorContent, errorDocument, shownError, showPage, titleOfError } from './error-page.tsx';
import { readForm } from './form.ts';
import { Layout, navigation, PAGE_HEADERS } from './layout.tsx';
import type { ShowLogin } from './login-routes.tsx';
import { type ConsolePage, type PageAnswer, returnPath } from './page.ts';
import { nameOfFor, WithNames } from './parts/parts.tsx';

export interface ConsoleParts {
  /** The current configuration, and why a newer one is not in use. */
  readonly generations: { readonly current: Generation; readonly problems: readonly Problem[] };
  readonly recorder: DecisionRecorder;
  readonly metrics: Metrics;
  /** Whether the service is stopping. */
  readonly isDraining: () => boolean;
  readonly people: UserAuthenticator;
  readonly showLogin: ShowLogin;
  readonly line: UserLimiter;
  readonly logger: Logger;
}

/** In bytes. */
const FORM_LIMIT = 16_384;

export function consoleRoutes(pages: readonly ConsolePage[], parts: ConsoleParts): Router {
  const router = new Router(EXACT);
  for (const page of pages) {
    router.register(routerPath(page.path), [page.method], (ctx: Context) => serve(ctx, page, pages, parts));
  }
  return router;
}

/** Somebody, and whether a cookie told who: browsers add it to requests of other sites too. */
interface Requester {
  readonly caller: Caller;
  readonly isBySession: boolean;
}

async function serve(
  ctx: Context,
  page: ConsolePage,
  pages: readonly ConsolePage[],
  parts: ConsoleParts,
): Promise<void> {
  stateOf(ctx).route = page.path;
  ctx.set(PAGE_HEADERS);
  let requester: Requester | undefined;
  try {
    requester = await askerOf(ctx, parts.people);
    if (requester === undefined) {
      showLogin(ctx, parts);
      return;
    }
    const { caller } = requester;
    const home = homeOf(page, pages, caller);
    const answer = home ?? (await answerOf(ctx, page, requester, parts));
    if ('redirect' in answer) {
      // A page may build the path from what somebody has written.
      ctx.redirect(returnPath(answer.redirect));
      ctx.status = 303;
      return;
    }
    const { status = 200, title, main } = answer;
    const frame = { caller, pages, path: page.path, csrf: parts.people.csrfOf(ctx) };
    const nameOf = nameOfFor(stateOf(ctx).generation, caller);
    showPage(
      ctx,
      status,
      <Layout {...{ ...frame, title }}>
        <WithNames nameOf={nameOf}>{main}</WithNames>
      </Layout>,
    );
  } catch (thrown) {
    if (thrown instanceof HttpError && thrown.status === 401) {
      stateOf(ctx).refusedFor = thrown.message;
      parts.showLogin(ctx);
      return;
    }
    showError(ctx, thrown, { page, pages, caller: requester?.caller, parts });
  }
}

async function answerOf(
  ctx: Context,
  page: ConsolePage,
  { caller, isBySession }: Requester,
  parts: ConsoleParts,
): Promise<PageAnswer> {
  const { people, line, generations, recorder, isDraining } = parts;
  const params: Readonly<Record<string, string>> = ctx.params ?? {};
  if (!may(caller, page.action, params.project_id)) {
    // The same for projects that do not exist: who may not see one learns nothing about it.
    throw new ApiError(403, 'your roles do not allow it; ask a manager of the project, or an operator');
  }
  const query = new URLSearchParams(ctx.querystring);
  if ([...query.values()].some((text) => text.includes('\0'))) {
    // PostgreSQL takes none.
    throw new ApiError(400, 'expected an address without NUL');
  }
  const form =
    page.method === 'POST' ? await checkedForm(ctx, page, isBySession, people) : new URLSearchParams();
  const { generation, requestId } = stateOf(ctx);
  const isEstimate = page.action === 'estimate' && page.method === 'POST';
  return line.run(
    generation,
    caller,
    (deadline) =>
      page.answer({
        ...{ caller, params, query, form, generation, requestId, deadline, recorder },
        csrf: people.csrfOf(ctx),
        problems: generations.problems,
        isDraining: isDraining(),
      }),
    { isEstimate },
  );
}

/** A member has no overview of the service: their first page is the first that they may see. */
function homeOf(page: ConsolePage, pages: readonly ConsolePage[], caller: Caller): PageAnswer | undefined {
  if (page.path !== '/' || page.method !== 'GET' || may(caller, page.action)) {
    return undefined;
  }
  const [first] = navigation(pages, caller);
  return first === undefined ? undefined : { redirect: first.path };
}

async function askerOf(ctx: Context, people: UserAuthenticator): Promise<Requester | undefined> {
  const byToken = await people.byToken(ctx);
  if (byToken !== undefined) {
    return { caller: byToken, isBySession: false };
  }
  const bySession = await people.bySession(ctx);
  if (bySession !== undefined) {
    return { caller: bySession, isBySession: true };
  }
  return people.anybody && { caller: people.anybody, isBySession: false };
}

/** @throws HttpError 403 for a form of another site, 413, 415, or 400 for an incomplete one */
async function checkedForm(
  ctx: Context,
  { formLimit = FORM_LIMIT }: ConsolePage,
  isBySession: boolean,
  people: UserAuthenticator,
): Promise<URLSearchParams> {
  const form = await readForm(ctx, formLimit);
  if (form === undefined) {
    throw new ApiError(413, `expected a form of at most ${formLimit} bytes`);
  }
  if (isBySession && !isCsrf(people.csrfOf(ctx), form.get('csrf'))) {
    throw new ApiError(403, 'expected a form of this session: open the page again, and send it again');
  }
  return form;
}

function showLogin(ctx: Context, { showLogin: show }: ConsoleParts): void {
  if (ctx.method === 'POST') {
    show(ctx, 'Nothing was changed: there is no session, or it has ended. Please log in.');
  } else {
    show(ctx);
  }
}

interface Failed {
  readonly page: ConsolePage;
  readonly pages: readonly ConsolePage[];
  /** `undefined` = nobody knows who asks. */
  readonly caller: Caller | undefined;
  readonly parts: ConsoleParts;
}

function showError(ctx: Context, thrown: unknown, { page, pages, caller, parts }: Failed): void {
  const { people, metrics, logger } = parts;
  const state = stateOf(ctx);
  const { requestId } = state;
  const shown = shownError(thrown);
  const facts = { request_id: requestId, method: ctx.method, path: page.path };
  if (shown === undefined) {
    const stack = thrown instanceof Error ? thrown.stack : undefined;
    logger.error({ ...facts, error: errorText(thrown), stack }, 'request failed');
  } else if (shown.cause !== undefined) {
    logger.warn({ ...facts, error: errorText(shown.cause) }, 'a page could not be shown');
  }
  if (thrown instanceof OverloadedError) {
    metrics.overloadRefusals.inc();
  } else if (thrown instanceof HttpError && shown !== undefined && shown.status !== 404) {
    state.refusedFor = shown.message;
  }
  const status = shown?.status ?? 500;
  const error = { message: shown?.message, requestId, isForm: page.method === 'POST' };
  ctx.set(shown?.headers ?? {});
  showPage(
    ctx,
    status,
    caller === undefined ? (
      errorDocument({ status, ...error })
    ) : (
      <Layout {...{ title: titleOfError(status), caller, pages, path: page.path, csrf: people.csrfOf(ctx) }}>
        <ErrorContent {...error} />
      </Layout>
    ),
  );
}
