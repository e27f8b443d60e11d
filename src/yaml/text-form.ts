/**
 * Writes texts so that PyYAML reads them back unchanged. The `yaml` package chooses between five forms and wraps long lines, and
 * PyYAML reads some of the results as another text, for example a script with a line of one blank. So quoted texts are written on
 * one line with everything unusual escaped, and block texts only when nothing about their lines is special.
 */
import { Scalar, type ScalarTag } from 'yaml';

/**
 * Always escaped: invisible characters, and those that PyYAML refuses or reads as the end of a line, unlike YAML 1.2. Tabs and line
 * ends are allowed.
 */
const ESCAPED = /(?![\t\n])[\p{Cc}\u2028\u2029\ufeff\ufffe\uffff\p{Surrogate}]/u;
const EVERY_ESCAPED = new RegExp(ESCAPED, 'gu');

/** Whether the text has several lines, does not begin with a blank, and does not end with a line of blanks. */
function mayKeepLines(text: string): boolean {
  return text.includes('\n') && /^\S/.test(text) && !/\n[\t ]+$/.test(text);
}

type Stringify = NonNullable<ScalarTag['stringify']>;

/** `own` = the function of the package, which is used where its result is unambiguous. */
export function textForm(own: Stringify): Stringify {
  return (item, context, onComment, onChompKeep) => {
    const text = String(item.value);
    if (ESCAPED.test(text)) {
      return quoted(text);
    }
    const as = (type: Scalar.Type) =>
      own(
        Object.assign(new Scalar(text), { type, comment: item.comment ?? null }),
        context,
        onComment,
        onChompKeep,
      );
    switch ('type' in item ? item.type : undefined) {
      case Scalar.PLAIN: {
        const written = text.includes('\n') ? '"' : as(Scalar.PLAIN);
        return /^["'|>]/.test(written) ? quoted(text) : written;
      }
      case Scalar.QUOTE_SINGLE:
        return text.includes('\n') ? quoted(text) : `'${text.replaceAll("'", "''")}'`;
      case Scalar.BLOCK_LITERAL:
      case Scalar.BLOCK_FOLDED: {
        const isBlock = context.implicitKey !== true && context.inFlow !== true && mayKeepLines(text);
        return isBlock ? as(Scalar.BLOCK_LITERAL) : quoted(text);
      }
      default:
        return quoted(text);
    }
  };
}

/** In double quotes, on one line. */
function quoted(text: string): string {
  return JSON.stringify(text).replace(EVERY_ESCAPED, escapeOf);
}

function escapeOf(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
