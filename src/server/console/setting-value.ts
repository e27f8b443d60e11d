import type { Setting } from '../../config/resolve.ts';
import { showValue } from '../../config/secret.ts';
import { valueText } from '../../config/text.ts';

/** The value of an option as it may be shown: secrets are hidden. `undefined` = not set. */
export function shownValue({ value, secret }: Setting): string | undefined {
  const visible = showValue(value, secret);
  return visible === undefined ? undefined : valueText(visible);
}
