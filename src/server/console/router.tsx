/** Serves all pages of the console with the same order of checks and the same error pages. */
import Router from '@koa/router';
import { type Context, HttpError } from 'koa';
import type { VNode } from 'preact';
import type { Problem } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import { budgetUnit } from '../../enforcement/configuration.ts';
import { ApiError } from '../api/route.ts';
import { type ApiParts, routerPath } from '../api/router.ts';
import type { Generation } from '../configuration/generation.ts';
import type { DecisionRecorder } from '../decisions/recorder.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { EXACT } from '../own-paths.ts';
import { errorAnswer, stateOf } from '../request-state.ts';
import { type Caller, may } from '../users/caller.ts';
import { isCsrf } from '../users/sessions/sessions.ts';
import { type Requester, requesterOf, type UserAuthenticator } from '../users/user-authenticator.ts';
import { ErrorContent, errorDocument, showPage, titleOfError } from './error-page.tsx';
import { readForm } from './form.ts';
import { Layout, navigation, PAGE_HEADERS } from './layout.tsx';
import type { ShowLogin } from './login-routes.tsx';
import { type ConsolePage, type PageAnswer, returnPath, seeOther } from './page.ts';
import { nameOfFor, WithNames } from './parts/parts.tsx';

export interface ConsoleParts extends ApiParts {
  readonly logger: Logger;
  /** The current configuration, and why a newer one is not in use. */
  readonly generations: { readonly current: Generation; readonly problems: readonly Problem[] };
  readonly recorder: DecisionRecorder;
  readonly metrics: Metrics;
  readonly isDraining: () => boolean;
  readonly showLogin: ShowLogin;
}

/** In bytes. */
const FORM_LIMIT = 16_384;

export function consoleRoutes(pages: readonly ConsolePage[], parts: ConsoleParts): Router {
  const router = new Router(EXACT);
  for (const page of pages) {
    router.register(routerPath(page.path), [page.method], (ctx: Context) =>
      serve(ctx, { page, pages, parts }),
    );
  }
  return router;
}

/** The requested page, with all others for the navigation. */
interface Wanted {
  readonly page: ConsolePage;
  readonly pages: readonly ConsolePage[];
  readonly parts: ConsoleParts;
}

async function serve(ctx: Context, wanted: Wanted): Promise<void> {
  const { page, parts } = wanted;
  stateOf(ctx).route = page.path;
  ctx.set(PAGE_HEADERS);
  let requester: Requester | undefined;
  try {
    requester = await requesterOf(ctx, parts.users);
    if (requester === undefined) {
      const isForm = ctx.method === 'POST';
      parts.showLogin(
        ctx,
        isForm ? 'Nothing was changed: there is no session, or it has ended. Please log in.' : undefined,
      );
      return;
    }
    const answer = homeOf(wanted, requester.caller) ?? (await answerOf(ctx, page, requester, parts));
    if ('redirect' in answer) {
      // The path may contain user input.
      seeOther(ctx, returnPath(answer.redirect));
      return;
    }
    const nameOf = nameOfFor(stateOf(ctx).generation, requester.caller);
    const main = <WithNames nameOf={nameOf}>{answer.main}</WithNames>;
    showPage(ctx, answer.status ?? 200, framed(ctx, wanted, requester.caller, answer.title, main));
  } catch (thrown) {
    if (thrown instanceof HttpError && thrown.status === 401) {
      stateOf(ctx).refusedFor = thrown.message;
      parts.showLogin(ctx);
      return;
    }
    showError(ctx, thrown, wanted, requester?.caller);
  }
}

function framed(
  ctx: Context,
  { page, pages, parts }: Wanted,
  caller: Caller,
  title: string,
  main: VNode,
): VNode {
  const csrf = parts.users.csrfOf(ctx);
  return (
    <Layout title={title} caller={caller} csrf={csrf} pages={pages} path={page.path}>
      {main}
    </Layout>
  );
}

async function answerOf(
  ctx: Context,
  page: ConsolePage,
  { caller, by }: Requester,
  parts: ConsoleParts,
): Promise<PageAnswer> {
  const { users, line, generations, recorder, isDraining } = parts;
  const params: Readonly<Record<string, string>> = ctx.params ?? {};
  if (!may(caller, page.action, params.project_id)) {
    // The same for projects that do not exist, so that callers cannot probe for them.
    throw new ApiError(403, 'your roles do not allow this; ask a manager of the project, or an operator');
  }
  const query = new URLSearchParams(ctx.querystring);
  if ([...query.values()].some((text) => text.includes('\0'))) {
    // PostgreSQL accepts no NUL.
    throw new ApiError(400, 'expected an address without NUL');
  }
  const form =
    page.method === 'POST' ? await checkedForm(ctx, page, by === 'session', users) : new URLSearchParams();
  const { generation, requestId } = stateOf(ctx);
  const isEstimate = page.action === 'estimate' && page.method === 'POST';
  return line.run(
    generation,
    caller,
    (deadline) =>
      page.answer({
        caller,
        params,
        query,
        form,
        generation,
        unit: budgetUnit(generation.configuration),
        requestId,
        deadline,
        recorder,
        csrf: users.csrfOf(ctx),
        problems: generations.problems,
        isDraining: isDraining(),
      }),
    { isEstimate },
  );
}

/** Members have no overview of the service: their first page is the first one that they may see. */
function homeOf({ page, pages }: Wanted, caller: Caller): PageAnswer | undefined {
  if (page.path !== '/' || page.method !== 'GET' || may(caller, page.action)) {
    return undefined;
  }
  const [first] = navigation(pages, caller);
  return first === undefined ? undefined : { redirect: first.path };
}

/** @throws HttpError 403 for a cross-site form, 413, 415, or 400 for an incomplete one */
async function checkedForm(
  ctx: Context,
  { formLimit = FORM_LIMIT }: ConsolePage,
  isBySession: boolean,
  users: UserAuthenticator,
): Promise<URLSearchParams> {
  const form = await readForm(ctx, formLimit);
  if (isBySession && !isCsrf(users.csrfOf(ctx), form.get('csrf'))) {
    throw new ApiError(403, 'expected a form of this session: open the page again, and send it again');
  }
  return form;
}

/** `caller`: `undefined` = unknown. */
function showError(ctx: Context, thrown: unknown, wanted: Wanted, caller: Caller | undefined): void {
  const { page, parts } = wanted;
  const state = stateOf(ctx);
  const { status, headers = {}, body } = errorAnswer(thrown, state, ctx.req, page.path, parts);
  const { requestId } = state;
  const error = { message: body?.message ?? undefined, requestId, isForm: page.method === 'POST' };
  ctx.set(headers);
  showPage(
    ctx,
    status,
    caller === undefined
      ? errorDocument(status, error)
      : framed(ctx, wanted, caller, titleOfError(status), <ErrorContent {...error} />),
  );
}
