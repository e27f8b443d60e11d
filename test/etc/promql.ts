/** What queries of Prometheus name, held against the metrics that there are. It reads the shapes that our queries have, not all of PromQL. */
export interface KnownMetric {
  readonly name: string;
  readonly type: string;
  readonly labels: readonly string[];
}

/** Prometheus adds them to every series. */
const OF_TARGETS = ['instance', 'job'];
const WORDS = new Set([
  'and',
  'or',
  'unless',
  'by',
  'without',
  'on',
  'ignoring',
  'group_left',
  'group_right',
  'offset',
  'bool',
]);
const PARTS = /_(bucket|count|sum)$/;

interface Matcher {
  readonly label: string;
  readonly operator: string;
  readonly value: string;
}

interface Selector {
  readonly metric: string;
  readonly matchers: readonly Matcher[];
}

/** The series that a query selects, in its order. */
export function selectorsIn(query: string): Selector[] {
  const grouping = /\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)/g;
  const bare = query.replace(grouping, '').replace(/\[[^\]]*\]|\boffset\s+\w+/g, '');
  return [
    ...bare.matchAll(/(?<![\w.$])([a-zA-Z_:][\w:]*)\s*(?:\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\}|(?!\s*[\w(:]))/g),
  ]
    .filter(([, metric = '']) => !WORDS.has(metric))
    .map(([, metric = '', matchers = '']) => ({
      metric,
      matchers: [...matchers.matchAll(/(\w+)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"/g)].map(
        ([, label = '', operator = '', value = '']) => ({ label, operator, value }),
      ),
    }));
}

/** The labels that a query groups or joins by. */
function groupingIn(query: string): string[] {
  return [...query.matchAll(/\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g)]
    .flatMap(([, list = '']) => list.split(','))
    .map((label) => label.trim())
    .filter((label) => label !== '');
}

/** Metrics and labels of a query that do not exist. */
export function strangersIn(query: string, metrics: readonly KnownMetric[]): string[] {
  const selectors = selectorsIn(query);
  const labelsOf = (series: string): readonly string[] | undefined => {
    const whole = metrics.find(({ name, type }) => name === series && type !== 'histogram');
    if (whole !== undefined) {
      return whole.labels;
    }
    const histogram = metrics.find(
      ({ name, type }) => name === series.replace(PARTS, '') && type === 'histogram',
    );
    return PARTS.test(series)
      ? histogram && [...histogram.labels, ...(/bucket$/.test(series) ? ['le'] : [])]
      : undefined;
  };
  const unknown = selectors.flatMap(({ metric, matchers }) => {
    const labels = labelsOf(metric);
    if (labels === undefined) {
      return [metric];
    }
    return matchers
      .filter(({ label }) => ![...labels, ...OF_TARGETS].includes(label))
      .map(({ label }) => `${label} of ${metric}`);
  });
  const known = [...selectors.flatMap(({ metric }) => labelsOf(metric) ?? []), ...OF_TARGETS];
  return [...unknown, ...groupingIn(query).filter((label) => !known.includes(label))];
}

/** The label values that queries select, `a|b` apart. */
export function valuesIn(queries: readonly string[], except: readonly string[]) {
  return queries
    .flatMap(selectorsIn)
    .flatMap(({ matchers }) => matchers)
    .filter(({ label }) => !except.includes(label))
    .flatMap(({ label, value }) => value.split('|').map((one) => ({ label, one })));
}
