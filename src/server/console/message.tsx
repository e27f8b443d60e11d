import type { ComponentChildren } from 'preact';

interface MessageProps {
  /** `done`: it worked. `error` is read to screen readers at once. */
  readonly kind: 'done' | 'notice' | 'error';
  readonly children: ComponentChildren;
}

/** What became of a form, or what somebody should know about a page. */
export function Message({ kind, children }: MessageProps) {
  return (
    <p class={kind} role={kind === 'error' ? 'alert' : 'status'}>
      {children}
    </p>
  );
}
