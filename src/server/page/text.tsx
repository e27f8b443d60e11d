/** Texts that somebody else has written, such as the name of a lease: they say nothing about how the page looks. */

/** What can't be seen, and what makes other text look different. Line breaks and tabs are as good as spaces in a page. */
const INVISIBLE = /[^\P{Cc}\t\n\r]|\p{Bidi_Control}|[\u2028\u2029]/gu;

/** The text as it is, kept apart from the writing direction of what is around it; an invisible character is named. */
export function Text({ children }: { readonly children: string }) {
  return <bdi>{visible(children)}</bdi>;
}

/** For where there is room for so many characters, such as in a picture. */
export function shortened(text: string, length: number): string {
  const characters = [...visible(text.slice(0, 2 * length + 2))];
  return characters.length > length ? `${characters.slice(0, length - 1).join('')}…` : characters.join('');
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
