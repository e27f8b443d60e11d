/** Words of other languages and of habit, and what to write instead. */

const STRAIGHT = 'write straight quotes, "text", not curly ones';

const FOREIGN: Readonly<Record<string, string>> = {
  and: 'write "&&", not "and"',
  or: 'write "||", not "or"',
  not: 'write "!(x in list)" or "!=", not "not"',
  is: 'compare with "==", not with "is"',
  '“': STRAIGHT,
  '”': STRAIGHT,
  '‘': STRAIGHT,
  '’': STRAIGHT,
  ';': 'expected one expression, without ";" at its end',
};

/** What to write instead of the word at an offset of an expression. The parser may have read its first letters. */
export function foreignWord(text: string, offset: number): string | undefined {
  const start = text.slice(0, offset).search(/\w*$/);
  const word = /^(?:\w+|[^\w\s])/.exec(text.slice(start, start + 40))?.[0]?.toLowerCase() ?? '';
  if (Object.hasOwn(FOREIGN, word)) {
    return FOREIGN[word];
  }
  return /^\d+[a-z]+$/.test(word)
    ? 'write a length of time as duration("48h") or duration("90m"), and days in hours'
    : undefined;
}

/** Names that readers expect. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  current: 'only updates have it: write on: update',
  duration: 'write hours(lease) for the length of a lease',
  length: 'write hours(lease) for the length of a lease',
  days: 'write hours(lease), and 48.0 for two days',
  project: 'write context.project',
  project_id: 'write context.project_id',
  project_name: 'write context.project.name',
  user: 'write context.user',
  user_id: 'write context.user_id',
  user_name: 'write context.user.name',
  gpu: 'write property(r, "gpu") for a property of machines',
  len: 'write size(list)',
  not: 'write "!(…)", not "not (…)"',
  None: 'write null, or has(x.y) to ask whether there is one',
};

/** `; write …` behind what is unknown; else an empty text. */
export function elsewhere(name: string): string {
  return Object.hasOwn(ELSEWHERE, name) ? `; ${ELSEWHERE[name]}` : '';
}
