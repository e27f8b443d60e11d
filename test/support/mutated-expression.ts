/** Expressions with one changed operator, to test their tests. */

const TOKEN = /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|<=|>=|==|!=|&&|\|\||[<>!]/g;
const INSTEAD: Readonly<Record<string, readonly string[]>> = {
  '<=': ['<', '>'],
  '<': ['<=', '>='],
  '>=': ['>', '<'],
  '>': ['>=', '<='],
  '==': ['!='],
  '!=': ['=='],
  '&&': ['||'],
  '||': ['&&'],
  '!': [''],
};

/** Each comparison with its boundary changed and reversed, `&&` and `||` swapped, each `!` removed. */
export function mutationsOf(text: string): { readonly text: string; readonly what: string }[] {
  return [...text.matchAll(TOKEN)].flatMap(({ 0: token, index }) =>
    (INSTEAD[token] ?? []).map((instead) => ({
      text: `${text.slice(0, index)}${instead}${text.slice(index + token.length)}`,
      what: `${text.slice(Math.max(0, index - 30), index)}[${token} → ${instead}]${text.slice(index + token.length, index + 30)}`,
    })),
  );
}
