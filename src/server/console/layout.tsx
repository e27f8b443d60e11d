/** The frame around a page for an authenticated user: navigation, user, heading. */
import type { ComponentChildren } from 'preact';
import { type Caller, may } from '../users/caller.ts';
import { assetPath } from './assets.ts';
import type { ConsolePage } from './page.ts';
import { Text, visible } from './parts/parts.tsx';

interface LayoutProps {
  readonly title: string;
  readonly caller: Caller;
  readonly csrf: string;
  /** All pages; the navigation shows those with a label that the caller may see. */
  readonly pages: readonly ConsolePage[];
  readonly path: string;
  readonly children: ComponentChildren;
}

export function Layout({ title, caller, csrf, pages, path, children }: LayoutProps) {
  return (
    <Document title={title}>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="top">
        <a class="brand" href="/">
          blazar-enforcement
        </a>
        <nav aria-label="Pages">
          <ul>
            {navigation(pages, caller).map((page) => (
              <li>
                <a href={page.path} aria-current={isWithin(page.path, path) ? 'page' : undefined}>
                  {page.label}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <Account caller={caller} csrf={csrf} />
      </header>
      <main id="main" tabIndex={-1}>
        <div class="title">
          <h1>
            <Text>{title}</Text>
          </h1>
          {/* Shown by a script if the page has live parts. */}
          <button type="button" class="plain" data-live-switch aria-pressed="true" hidden>
            Live updates
          </button>
        </div>
        {/* Shown by a script while it cannot load the page. */}
        <p class="notice" role="status" data-live-late hidden>
          This page may be out of date: the service cannot show it at the moment. It is tried again.
        </p>
        {children}
      </main>
      <p class="unseen" role="status" data-live-status />
    </Document>
  );
}

function Account({ caller, csrf }: { readonly caller: Caller; readonly csrf: string }) {
  return (
    <div class="account">
      <span>
        <Text>{caller.name}</Text> <small>{roleOf(caller)}</small>
      </span>
      {caller.provenBy === 'keystone' && csrf !== '' && <a href="/login/project">Switch project</a>}
      {csrf !== '' && (
        <form method="post" action="/logout">
          <input type="hidden" name="csrf" value={csrf} />
          <button type="submit" class="plain">
            Log out
          </button>
        </form>
      )}
    </div>
  );
}

/** The role of the caller in the project of the session. */
function roleOf({ kind, memberships }: Caller): string {
  return memberships.some(({ isManager }) => isManager) ? 'manager' : kind;
}

export function navigation(pages: readonly ConsolePage[], caller: Caller): readonly ConsolePage[] {
  return pages.filter(
    ({ method, label, action }) => method === 'GET' && label !== undefined && may(caller, action),
  );
}

/** Whether a page belongs to an entry of the navigation: `/projects/{project_id}` to `/projects`. */
function isWithin(entry: string, path: string): boolean {
  return path === entry || (entry !== '/' && path.startsWith(`${entry}/`));
}

interface DocumentProps {
  readonly title: string;
  /** Whether the scripts of the console are loaded. Default true. */
  readonly hasScripts?: boolean;
  readonly children: ComponentChildren;
}

/** The frame of all pages, also without a logged-in user. */
export function Document({ title, hasScripts = true, children }: DocumentProps) {
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>{visible(title)} · blazar-enforcement</title>
        <link rel="icon" href={assetPath('icon.svg')} type="image/svg+xml" />
        <link rel="stylesheet" href={assetPath('style.css')} />
        {hasScripts && <script type="module" src={assetPath('main.js')} />}
      </head>
      <body>{children}</body>
    </html>
  );
}

/**
 * Headers of every response of the console: it loads scripts, styles and images only from the service itself,
 * allows none inline, cannot be framed and is not cached.
 */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; '),
  'X-Content-Type-Options': 'nosniff',
  // No referrer for other sites. Not no-referrer: browsers would send the page's own forms with "Origin:
  // null".
  'Referrer-Policy': 'same-origin',
  'Cache-Control': 'no-store',
};
