/**
 * Patterns in the notation of Python's `re`, as regular expressions. They differ: `$` also matches before a last line break, `.`
 * excludes only `\n`, `\d` is any decimal digit, and `(?i:…)` ignores case in a group, which Node 20 does not know.
 */

const TOKEN = /\\.|\[(?:\\.|[^\]\\])*\]|\(\?i:|\(\?:|[()$.]|[A-Za-z]/gsu;

const KNOWN = new Map<string, RegExp>();

/** To be searched for, not anchored. @throws SyntaxError for a pattern that is not valid */
export function pythonPattern(pattern: string): RegExp {
  const known = KNOWN.get(pattern);
  if (known !== undefined) {
    return known;
  }
  // One entry for each open group: whether it ignores case.
  const groups: boolean[] = [];
  const source = pattern.replace(TOKEN, (token) => {
    const ignoresCase = groups.at(-1) ?? false;
    switch (token) {
      case '(?i:':
        groups.push(true);
        return '(?:';
      case '(':
      case '(?:':
        groups.push(ignoresCase);
        return token;
      case ')':
        groups.pop();
        return token;
      case '$':
        return '(?=\\n?(?![^]))';
      case '.':
        return '[^\\n]';
      case '\\d':
        return '\\p{Nd}';
      default:
        return ignoresCase && /^[A-Za-z]$/.test(token) ? eitherCase(token) : token;
    }
  });
  const expression = new RegExp(source, 'u');
  KNOWN.set(pattern, expression);
  return expression;
}

/** Python's also takes the long s and the sign for kelvin. */
function eitherCase(letter: string): string {
  const further: Readonly<Record<string, string>> = { s: 'ſ', k: '\u212a' };
  const small = letter.toLowerCase();
  return `[${small}${small.toUpperCase()}${further[small] ?? ''}]`;
}
