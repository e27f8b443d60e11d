/** Texts that somebody else has written, such as the name of a lease: they say nothing about how the page looks. */

/** What can't be seen, and what makes other text look different. Line breaks and tabs are as good as spaces in a page. */
const INVISIBLE = /[^\P{Cc}\t\n\r]|\p{Bidi_Control}|[\u2028\u2029]/gu;

/** The text as it is, kept apart from the writing direction of what is around it; an invisible character is named. */
export function Text({ children }: { readonly children: string }) {
  return <bdi>{children.replace(INVISIBLE, nameOf)}</bdi>;
}

/** `[U+202E]` */
function nameOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return `[U+${code.toString(16).toUpperCase().padStart(4, '0')}]`;
}
