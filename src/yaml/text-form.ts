/**
 * How a text is written, so that it is read to the letter. The `yaml` package chooses between five forms, and breaks long
 * ones over lines; PyYAML reads some of what it writes then as another text, such as a line of one blank in a script. So
 * quotes stand on one line here, with everything unusual escaped, and lines are only kept where nothing about them is special.
 */
import { Scalar, type ScalarTag } from 'yaml';

/**
 * What PyYAML takes for the end of a line, or refuses to read, although YAML 1.2 does not, and what cannot be seen: only ever
 * escaped. A tab and the end of a line may stand as they are.
 */
const ESCAPED = /(?![\t\n])[\p{Cc}\u2028\u2029\ufeff\ufffe\uffff\p{Surrogate}]/u;
const EVERY_ESCAPED = new RegExp(ESCAPED, 'gu');

/** No blank decides where the text begins, and none is left alone at its end. */
function mayKeepLines(text: string): boolean {
  return text.includes('\n') && /^\S/.test(text) && !/\n[\t ]+$/.test(text);
}

type Stringify = NonNullable<ScalarTag['stringify']>;

/** `own` = the package's way, which is asked where its answer is one that can be read in one way only. */
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

/** Between double quotes, on one line. */
function quoted(text: string): string {
  return JSON.stringify(text).replace(EVERY_ESCAPED, escapeOf);
}

function escapeOf(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
