/** What users read of rules. */
import { cut, onOneLine } from '../base/visible-text.ts';

/** In characters, as of other reasons. */
const MAX_MESSAGE = 2000;

/** What an expression says, which may quote the request. */
export function shownMessage(text: string): string {
  return cut(onOneLine(cut(text, MAX_MESSAGE)), MAX_MESSAGE).trim();
}
