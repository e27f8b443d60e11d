/** Error messages of the console. */
import type { Context, Next } from 'koa';
import type { VNode } from 'preact';
import { renderToString } from 'preact-render-to-string';
import { z } from 'zod';
import { pathOf } from '../listener/connections.ts';
import { stateOf } from '../request-state.ts';
import { Document, PAGE_HEADERS } from './layout.tsx';
import { Text } from './parts/parts.tsx';

const problemSchema = z.object({ message: z.string().optional() });

const TITLES: Readonly<Record<number, string>> = {
  400: 'This request is not valid',
  403: 'Not allowed',
  404: 'Not found',
  409: 'This conflicts with another change',
  412: 'Changed in the meantime',
  413: 'Too large',
  500: 'Something went wrong',
  503: 'Please try again in a moment',
};

export function titleOfError(status: number): string {
  return TITLES[status] ?? 'This was not possible';
}

interface ErrorPageProps {
  /** `undefined` = no message that may be shown. */
  readonly message: string | undefined;
  readonly requestId: string;
  readonly isForm: boolean;
}

/** The whole page, if the user is unknown. */
export function errorDocument(status: number, props: ErrorPageProps): VNode {
  const title = titleOfError(status);
  return (
    <Document title={title} hasScripts={false}>
      <main>
        <h1>
          <Text>{title}</Text>
        </h1>
        <ErrorContent {...props} />
      </main>
    </Document>
  );
}

/** Sends errors to browsers as pages, except under the API: mistyped addresses, failed callbacks. */
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
    const error = { message: answered.message, requestId, isForm: method === 'POST' };
    showPage(ctx, status, errorDocument(status, error));
  }
}

export function showPage(ctx: Context, status: number, page: VNode): void {
  ctx.type = 'text/html; charset=utf-8';
  ctx.body = `<!DOCTYPE html>${renderToString(page)}`;
  ctx.status = status;
}

/** The content below the heading, which is the title. */
export function ErrorContent({ message, requestId, isForm }: ErrorPageProps) {
  return (
    <section aria-label="Error">
      {message !== undefined && (
        <p class="error" role="alert">
          <Text>{sentence(message)}</Text>
        </p>
      )}
      {isForm && message !== undefined && <p>Nothing was changed. Go back to correct the form.</p>}
      {message === undefined && <p>The log of the service has the cause.</p>}
      <p>
        If you ask for help, include this request id: <code>{requestId}</code>
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
