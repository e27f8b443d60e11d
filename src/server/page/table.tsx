import type { ComponentChildren } from 'preact';

interface TableProps {
  /** What the table shows, for those who hear it. */
  readonly label: string;
  readonly head: readonly string[];
  /** Whether it gets no higher than a screen. */
  readonly isLong?: boolean;
  /** Its rows. */
  readonly children: ComponentChildren;
}

/** Where it has no room it scrolls, also by the keyboard: for that it can be focused. */
export function Table({ label, head, isLong = false, children }: TableProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable without a mouse.
    <section class={isLong ? 'scrolls long' : 'scrolls'} aria-label={label} tabIndex={0}>
      <table>
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
