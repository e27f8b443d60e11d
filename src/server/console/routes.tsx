/** The page for people: rendered on the server, without scripts or external resources, and protected by the tokens of [service]. */
import Router from '@koa/router';
import { type Context, HttpError } from 'koa';
import type { VNode } from 'preact';
import { renderToString } from 'preact-render-to-string';
import { InvalidRequestError, type Problem } from '../../errors.ts';
import { OverloadedError } from '../../waiting-line.ts';
import type { DecisionRecorder } from '../decision-recorder.ts';
import type { Generation } from '../generation.ts';
import type { Metrics } from '../metrics.ts';
import { EXACT } from '../own-paths.ts';
import { may } from '../people/access.ts';
import type { People } from '../people/contract.ts';
import { stateOf } from '../request-state.ts';
import { PAGE_HEADERS } from './document.tsx';
import { readForm } from './form.ts';
import { judge, OPERATIONS } from './judge.ts';
import { type Judging, NOTHING_JUDGED } from './judging.tsx';
import { ledgerView } from './ledger-view.ts';
import type { ShowLogin } from './login-routes.tsx';
import { OverviewPage } from './overview.tsx';

export interface PageParts {
  /** The current configuration, and why a newer one is not in use. */
  readonly generations: { readonly current: Generation; readonly problems: readonly Problem[] };
  readonly recorder: DecisionRecorder;
  readonly metrics: Metrics;
  readonly people: People;
  readonly showLogin: ShowLogin;
  /** Whether the service is stopping. */
  readonly isDraining: () => boolean;
}

/** In bytes: a token with its name, or the names of the other fields. */
const FIELDS_LIMIT = 1024;
/** A form encodes each byte that is not a letter or digit as three. */
const FORM_EXPANSION = 3;
/** Maximum size of a pasted request, which the page shows again. */
const PASTED_LIMIT = 1_048_576;

export function pageRoutes(parts: PageParts): Router {
  const { generations, people, showLogin, recorder, metrics, isDraining } = parts;
  const mayLook = async (ctx: Context) => {
    try {
      const person = (await people.byToken(ctx)) ?? (await people.bySession(ctx)) ?? people.anybody;
      return person !== undefined && may(person, 'see-configuration');
    } catch (thrown) {
      if (thrown instanceof HttpError && thrown.status === 401) {
        stateOf(ctx).refusedFor = thrown.message;
        return false;
      }
      throw thrown;
    }
  };

  const showOverview = async (ctx: Context, judging: Judging) => {
    const { generation } = stateOf(ctx);
    const { number, configuration } = generation;
    const asked = new URLSearchParams(ctx.querystring).get('project') ?? '';
    const ledger = await ledgerView(generation, asked, recorder.recent);
    show(
      ctx,
      ledger?.shown.kind === 'mistake' ? 400 : judging.status,
      <OverviewPage
        generation={number}
        configuration={configuration}
        problems={generations.problems}
        isDraining={isDraining()}
        decisions={recorder.recent.list()}
        judging={judging}
        ledger={ledger}
        canLogOut={people.anybody === undefined}
      />,
    );
  };

  const router = new Router(EXACT);
  router.use((ctx, next) => {
    ctx.set(PAGE_HEADERS);
    return next();
  });
  router.get('/', async (ctx) => {
    if (await mayLook(ctx)) {
      await showOverview(ctx, NOTHING_JUDGED);
    } else {
      showLogin(ctx);
    }
  });
  router.post('/', async (ctx) => {
    if (!(await mayLook(ctx))) {
      showLogin(ctx, 'Nothing was judged: there is no session, or it has ended. Please log in.');
      return;
    }
    const judging = await judgeForm(ctx);
    if (judging.status === 503) {
      ctx.set('Retry-After', '1');
      metrics.refusedForOverload();
    }
    await showOverview(ctx, judging);
  });
  return router;
}

/** The result of the form: a verdict, or a sentence why there is none, with the form as it was sent. */
async function judgeForm(ctx: Context): Promise<Judging> {
  const state = stateOf(ctx);
  const limit = Math.min(state.generation.options.body_limit, PASTED_LIMIT);
  const form = await readForm(ctx, FORM_EXPANSION * limit + FIELDS_LIMIT);
  // Browsers write every line break as two characters.
  const request = form?.get('request')?.replaceAll('\r\n', '\n') ?? '';
  if (form === undefined || Buffer.byteLength(request) > limit) {
    const error = `expected a request of at most ${limit} bytes`;
    return { status: 413, operation: 'create', request, error };
  }
  const asked = form.get('operation');
  const operation = OPERATIONS.find((name) => name === asked);
  if (operation === undefined) {
    const error = `operation: expected one of ${OPERATIONS.join(', ')}`;
    return { status: 400, operation: 'create', request, error };
  }
  try {
    return { status: 200, operation, request, verdict: await judge(state, operation, request) };
  } catch (thrown) {
    if (thrown instanceof InvalidRequestError || thrown instanceof OverloadedError) {
      const status = thrown instanceof OverloadedError ? 503 : 400;
      return { status, operation, request, error: thrown.message };
    }
    throw thrown;
  }
}

function show(ctx: Context, status: number, page: VNode): void {
  ctx.type = 'text/html; charset=utf-8';
  ctx.body = `<!DOCTYPE html>${renderToString(page)}`;
  ctx.status = status;
}
