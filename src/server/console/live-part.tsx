import type { ComponentChildren } from 'preact';

interface LivePartProps {
  /** Unlike that of any other part of the page. */
  readonly name: string;
  readonly children: ComponentChildren;
}

/** A part of a page that scripts replace when something has happened. Without them it stays as it was loaded. Forms do not belong into it. */
export function LivePart({ name, children }: LivePartProps) {
  return <div data-live={name}>{children}</div>;
}
