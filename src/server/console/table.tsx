import type { ComponentChildren } from 'preact';

interface TableProps {
  /** What it is: its caption, which screen readers read first. */
  readonly label: string;
  readonly head: readonly string[];
  /** Whether its height is limited to the screen. */
  readonly isLong?: boolean;
  /** Its rows. */
  readonly children: ComponentChildren;
}

/** It scrolls when there is no room, and can be focused so that the keyboard can scroll it. */
export function Table({ label, head, isLong = false, children }: TableProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable without a mouse.
    <section class={isLong ? 'scrolls long' : 'scrolls'} aria-label={label} tabIndex={0}>
      <table>
        <caption>{label}</caption>
        <thead>
          <tr>
            {head.map((name) => (
              <th scope="col">{name}</th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </section>
  );
}
