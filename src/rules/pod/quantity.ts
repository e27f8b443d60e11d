/** Quantities of Kubernetes, such as `500m`, `16Gi` and `1e3`. Source: Kubernetes API, resource.Quantity. */
const QUANTITY =
  /^([+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30}))(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d{1,3}))?$/;

const DECIMAL = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E'];
const BINARY = ['Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];

/** @throws Error if it is no quantity */
export function quantityOf(value: unknown): number {
  const text = typeof value === 'number' ? String(value) : value;
  const [, number, unit = '', exponent] = (typeof text === 'string' && QUANTITY.exec(text)) || [];
  const amount = Number(number) * (exponent === undefined ? factorOf(unit) : 10 ** Number(exponent));
  if (!Number.isFinite(amount)) {
    throw new Error('expected a quantity such as 500m or 16Gi');
  }
  return amount;
}

function factorOf(unit: string): number {
  return unit.endsWith('i') ? 1024 ** (BINARY.indexOf(unit) + 1) : 1000 ** (DECIMAL.indexOf(unit) - 3);
}
