/** Texts for conditions and events: bounded, and without what nobody sees. */
import { visibleText } from '../../../base/visible-text.ts';

/** The API server refuses longer notes of events. In bytes. Source: Kubernetes API, events.k8s.io/v1. */
const MOST = 1024;
const DOTS = '…';
/** Nobody needs the rest, and escaping makes up to twelve characters of one. */
const LOOKED_AT = 2 * MOST;

/** At most 1 kB of UTF-8. */
export function shownText(text: string): string {
  const shown = visibleText(text.slice(0, LOOKED_AT));
  const isCut = text.length > LOOKED_AT || Buffer.byteLength(shown) > MOST;
  if (!isCut) {
    return shown;
  }
  const bytes = Buffer.from(shown).subarray(0, MOST - Buffer.byteLength(DOTS));
  // The end may be half a letter, which decodes to U+FFFD.
  return `${bytes.toString().replace(/\ufffd$/, '')}${DOTS}`;
}
