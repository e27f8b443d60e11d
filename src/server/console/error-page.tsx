/** What went wrong, in plain words, for whoever looks at the console. */
import { type Context, HttpError, type Next } from 'koa';
import type { VNode } from 'preact';
import { renderToString } from 'preact-render-to-string';
import { z } from 'zod';
import { OverloadedError } from '../../base/concurrency-limiter.ts';
import { errorText, InvalidRequestError, LedgerUnavailableError } from '../../base/errors.ts';
import { CursorError } from '../../ledger/reports/pages.ts';
import { ApiError } from '../api/route.ts';
import { pathOf } from '../own-paths.ts';
import { stateOf } from '../request-state.ts';
import { Document, PAGE_HEADERS } from './layout.tsx';
import { Text } from './parts/parts.tsx';

const problemSchema = z.object({ message: z.string().optional() });

/** A mistake of the client, or something that is not there now. */
interface ShownError {
  readonly status: number;
  /** For the caller. */
  readonly message: string;
  readonly headers: Readonly<Record<string, string>>;
  /** For the log. */
  readonly cause?: unknown;
}

/** In seconds. */
const RETRY_AFTER = { 'Retry-After': '5' };

/** `undefined` = a fault of the service, of which the caller gets the request id alone. */
export function shownError(thrown: unknown): ShownError | undefined {
  if (thrown instanceof ApiError) {
    const { status, message, field, headers, cause } = thrown;
    return { status, message: field === undefined ? message : `${field}: ${message}`, headers, cause };
  }
  if (thrown instanceof CursorError) {
    return {
      status: 400,
      message: 'this page of the list does not exist: start at its first page',
      headers: {},
    };
  }
  if (thrown instanceof InvalidRequestError) {
    return { status: 400, message: thrown.message, headers: {} };
  }
  if (thrown instanceof LedgerUnavailableError) {
    return {
      status: 503,
      message: 'the ledger does not answer',
      headers: RETRY_AFTER,
      cause: errorText(thrown),
    };
  }
  if (thrown instanceof OverloadedError) {
    return { status: 503, message: 'there are too many requests at the same time', headers: RETRY_AFTER };
  }
  if (thrown instanceof HttpError && thrown.expose) {
    return { status: thrown.status, message: thrown.message, headers: thrown.headers ?? {} };
  }
  return undefined;
}

const TITLES: Readonly<Record<number, string>> = {
  400: 'This request is not valid',
  403: 'You may not see or do this',
  404: 'There is nothing here',
  409: 'This conflicts with another change',
  412: 'This was changed in the meantime',
  413: 'This is too long',
  500: 'Something went wrong here',
  503: 'Please try again in a moment',
};

export function titleOfError(status: number): string {
  return TITLES[status] ?? 'This was not possible';
}

interface ErrorPageProps {
  /** `undefined` = none that may be shown. */
  readonly message: string | undefined;
  readonly requestId: string;
  /** Whether a form was sent. */
  readonly isForm: boolean;
}

interface ErrorDocumentProps extends ErrorPageProps {
  readonly status: number;
}

/** The whole page, where nobody knows who asks. */
export function errorDocument({ status, ...rest }: ErrorDocumentProps): VNode {
  const title = titleOfError(status);
  return (
    <Document title={title} hasScripts={false}>
      <main>
        <h1>
          <Text>{title}</Text>
        </h1>
        <ErrorContent {...rest} />
      </main>
    </Document>
  );
}

/** Browsers get the errors of all paths but those of the API as pages: a mistyped address, a callback that fails. */
export async function errorPages(ctx: Context, next: Next): Promise<void> {
  await next();
  const { status, method } = ctx;
  const answered = problemSchema.safeParse(ctx.body).data;
  if (
    status >= 400 &&
    answered !== undefined &&
    /\btext\/html\b/i.test(ctx.get('Accept')) &&
    !pathOf(ctx.req).startsWith('/v1/')
  ) {
    const { requestId } = stateOf(ctx);
    ctx.set(PAGE_HEADERS);
    showPage(
      ctx,
      status,
      errorDocument({ status, message: answered.message, requestId, isForm: method === 'POST' }),
    );
  }
}

export function showPage(ctx: Context, status: number, page: VNode): void {
  ctx.type = 'text/html; charset=utf-8';
  ctx.body = `<!DOCTYPE html>${renderToString(page)}`;
  ctx.status = status;
}

/** The content; the title is its heading. */
export function ErrorContent({ message, requestId, isForm }: ErrorPageProps) {
  return (
    <section aria-label="What happened">
      {message !== undefined && (
        <p class="error" role="alert">
          <Text>{sentence(message)}</Text>
        </p>
      )}
      {isForm && message !== undefined && <p>Nothing was changed. Go back to correct the form.</p>}
      {message === undefined && <p>The log of the service has the cause.</p>}
      <p>
        If you ask for help, give this request id: <code>{requestId}</code>
      </p>
      <p>
        <a href="/">Back to the start page</a>
      </p>
    </section>
  );
}

function sentence(message: string): string {
  const begun = message.charAt(0).toUpperCase() + message.slice(1);
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}
