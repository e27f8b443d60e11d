import { createHash } from 'node:crypto';
import type { ComponentChildren } from 'preact';
import { STYLE } from './style.ts';

interface DocumentProps {
  readonly title: string;
  readonly children: ComponentChildren;
}

/** What all pages share. `STYLE` has no character that is written otherwise in HTML: it arrives as it was hashed. */
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

/** With every answer of the page: nothing is loaded, no script runs, nobody frames it, nothing is kept. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy': [
    "default-src 'none'",
    `style-src 'sha256-${STYLE_HASH}'`,
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; '),
  'X-Content-Type-Options': 'nosniff',
  // Other sites are told nothing. Not no-referrer: with it the forms of the page itself are sent with "Origin: null".
  'Referrer-Policy': 'same-origin',
  'Cache-Control': 'no-store',
};
