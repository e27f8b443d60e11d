/** Patterns that tell parts of pictures apart without colours. */

/** The pattern for the future. It must come before the pictures that use it. */
export function Patterns() {
  return (
    <svg width="0" height="0" class="patterns" aria-hidden="true">
      <defs>
        <pattern
          id="hatched"
          width="6"
          height="6"
          patternUnits="userSpaceOnUse"
          patternTransform="rotate(45)"
        >
          <rect width="6" height="6" class="hatch-ground" />
          <rect width="2.5" height="6" class="hatch-line" />
        </pattern>
      </defs>
    </svg>
  );
}

export type Look = 'used' | 'planned' | 'left' | 'pending' | 'active' | 'ended' | 'refused';

interface LegendProps {
  readonly entries: readonly (readonly [Look, string])[];
}

export function Legend({ entries }: LegendProps) {
  return (
    <ul class="legend">
      {entries.map(([look, text]) => (
        <li>
          <svg width="24" height="12" aria-hidden="true">
            <rect x="1" y="1" width="22" height="10" rx="2" class={`bar ${look}`} />
          </svg>{' '}
          {text}
        </li>
      ))}
    </ul>
  );
}
