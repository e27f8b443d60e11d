import { createHash } from 'node:crypto';
import type { ComponentChildren } from 'preact';
import { STYLE } from './style.ts';

interface DocumentProps {
  readonly title: string;
  readonly children: ComponentChildren;
}

/** The frame of all pages. `STYLE` has no character that HTML escapes, so its hash stays valid. */
export function Document({ title, children }: DocumentProps) {
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>{title} · blazar-enforcement</title>
        <style>{STYLE}</style>
      </head>
      <body>{children}</body>
    </html>
  );
}

const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64');

/** Headers of every answer of the page: it loads nothing, runs no script, cannot be framed and is not cached. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy': [
    "default-src 'none'",
    `style-src 'sha256-${STYLE_HASH}'`,
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; '),
  'X-Content-Type-Options': 'nosniff',
  // No referrer for other sites. Not no-referrer, with which browsers send the page's own forms with "Origin: null".
  'Referrer-Policy': 'same-origin',
  'Cache-Control': 'no-store',
};
