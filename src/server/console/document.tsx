import type { ComponentChildren } from 'preact';
import { assetPath } from './assets.ts';
import { visible } from './text.tsx';

interface DocumentProps {
  readonly title: string;
  /** Whether the scripts of the console are loaded. Default true. */
  readonly hasScripts?: boolean;
  readonly children: ComponentChildren;
}

/** The frame of all pages, with or without somebody who is logged in. */
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
 * Headers of every answer of the console: it loads scripts, styles and pictures only from the service itself, none that stand within a
 * page, cannot be framed and is not cached.
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
  // No referrer for other sites. Not no-referrer, with which browsers send the page's own forms with "Origin: null".
  'Referrer-Policy': 'same-origin',
  'Cache-Control': 'no-store',
};
