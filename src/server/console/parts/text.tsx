/** Untrusted texts, such as the name of a lease: they must not affect the look of the page. */

/** Characters that are invisible or change how other text looks. In a page, line breaks and tabs are spaces. */
const INVISIBLE = /[^\P{Cc}\t\n\r]|\p{Bidi_Control}|[\u2028\u2029]/gu;

/** The text, isolated from the writing direction around it, with every invisible character named. */
export function Text({ children }: { readonly children: string }) {
  return <bdi>{visible(children)}</bdi>;
}

/** With every invisible character named. */
export function visible(text: string): string {
  return text.replace(INVISIBLE, nameOf);
}

/** `[U+202E]` */
function nameOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return `[U+${code.toString(16).toUpperCase().padStart(4, '0')}]`;
}
