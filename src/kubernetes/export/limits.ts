/**
 * What the API server refuses to read, to store or to evaluate. Source: Kubernetes 1.36, `PerCallLimit`, `RuntimeCELCostBudget` and the
 * library Authz of k8s.io/apiserver; cel-go, `CostTracker`; etcd, `--max-request-bytes`.
 */

interface Expressions {
  readonly variables: readonly { readonly expression: string }[];
  readonly validations: readonly { readonly expression: string }[];
}

/** In characters. The CEL parser reads no longer expressions. */
const MAX_EXPRESSION = 100_000;
/** In bytes. etcd stores no larger objects: 1.5 MiB, including managed fields. */
const MAX_OBJECT = 1_400_000;
const MAX_COST = 1_000_000;
const MAX_COST_OF_ALL = 10_000_000;
const COST_OF_CHECK = 350_000;
/** Tolerations, and expressions at each place, of a pod that every exported policy can evaluate. */
const ITEMS = 16;

/** The export would be refused, or could not be evaluated. */
export class NotExportableError extends Error {
  override readonly name = 'NotExportableError';
}

/**
 * @throws NotExportableError if the API server would refuse the policy, or could not evaluate it for pods of
 * usual size
 */
export function ensureWithinLimits(name: string, spec: Expressions): void {
  const expect = (what: string, most: number, got: number) => {
    if (got > most) {
      throw new NotExportableError(
        `${name}: expected ${what} of at most ${most}, got ${got}: export fewer or shorter policies`,
      );
    }
  };
  const expressions = [...spec.variables, ...spec.validations].map(({ expression }) => expression);
  const costs = expressions.map(costOf);
  expect('expressions', MAX_EXPRESSION, Math.max(...expressions.map(({ length }) => length)));
  expect('an expression with a cost', MAX_COST, Math.max(...costs));
  expect(
    `a cost, to which each policy adds ${COST_OF_CHECK} for a check of rights,`,
    MAX_COST_OF_ALL,
    costs.reduce((sum, one) => sum + one, 0),
  );
  expect('an object', MAX_OBJECT, JSON.stringify(spec).length);
}

const LITERAL = /'(?:[^'\\]|\\.)*'/g;
/** Looked up as a set. */
const CONSTANT_LIST = / in \[[^\]]*\]/g;
const TOKEN = /\w+|[=!<>&|?+]+/g;

/** The maximum cost of an expression for a pod with `ITEMS` of all that it iterates over. */
function costOf(expression: string): number {
  const plain = expression
    // Comparing texts costs a tenth of their length.
    .replace(LITERAL, (text) => 'x '.repeat(1 + Math.ceil(text.length / 10)))
    .replace(CONSTANT_LIST, ' in x');
  const count = (of: RegExp | string) => plain.split(of).length - 1;
  const once = count(TOKEN) + 10 * count('[') + 30 * count('{');
  const times = /\.(?:all|exists|filter|map)\(/.test(plain) ? ITEMS : 1;
  return once * times + COST_OF_CHECK * count('.check(');
}
