/** The metrics of docs/reference/metrics.md, which test/docs holds against a real service, and those that prom-client and Prometheus add. */
import { collectDefaultMetrics, Registry } from 'prom-client';
import { namesUnder, pageNamed, tableUnder } from '../docs/markdown.ts';
import type { KnownMetric } from './promql.ts';

const page = pageNamed('docs/reference/metrics.md');
const spansIn = (text = ''): string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);

/** Those of the service, in the order of the page. */
export const OWN_METRICS: readonly KnownMetric[] = tableUnder(page, 'Metrics').map(
  ([name, type = '', labels]) => ({
    name: spansIn(name).join(),
    type,
    labels: spansIn(labels),
  }),
);

/** The values that the page names for a label, those of the decision log included. */
export function documentedValues(label: string): readonly string[] {
  const [, values] = tableUnder(page, 'Labels').find(([name]) => name === `\`${label}\``) ?? [];
  const ofDecisions =
    label === 'outcome' ? namesUnder(pageNamed('docs/reference/decision-log.md'), 'Outcomes') : [];
  return [...spansIn(values), ...ofDecisions];
}

export async function everyMetric(): Promise<readonly KnownMetric[]> {
  const register = new Registry();
  collectDefaultMetrics({ register });
  const ofProcess = (await register.getMetricsAsJSON()).map(({ name, type, values }) => ({
    name,
    type: String(type),
    labels: values.flatMap(({ labels }) => Object.keys(labels)),
  }));
  register.clear();
  return [...OWN_METRICS, ...ofProcess, { name: 'up', type: 'gauge', labels: [] }];
}
