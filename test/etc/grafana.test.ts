/** The dashboards in etc/grafana, held against the metrics that there are. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { projectFile } from '../support/files.ts';
import { dashboardNamed, queriesOf } from './dashboards.ts';
import { documentedValues, everyMetric, OWN_METRICS } from './documented-metrics.ts';
import { selectorsIn, strangersIn, valuesIn } from './promql.ts';

const operators = dashboardNamed('operators');
const budgets = dashboardNamed('budgets');
const metricOf = (series: string) =>
  OWN_METRICS.find(({ name }) => name === series || name === series.replace(/_(bucket|count|sum)$/, ''));
const metricsIn = (queries: readonly string[]) => [
  ...new Set(queries.flatMap(selectorsIn).map(({ metric }) => metricOf(metric)?.name ?? metric)),
];

/** Labels whose values a site has. */
const OF_SITES = ['job', 'instance', 'project_id', 'user_id'];

describe.each([operators, budgets])('the dashboard $uid', (dashboard) => {
  const { text, panels, templating, links } = dashboard;
  const queries = queriesOf(dashboard);
  const variables = templating.list.map(({ name }) => name);

  it('uses metrics and labels that exist', async () => {
    const metrics = await everyMetric();
    const asked = [
      ...queries,
      ...templating.list.flatMap((variable) => {
        const query = variable.type === 'query' ? variable.query.query : '';
        const [, selector = '', label = ''] = /^label_values\((.*), (\w+)\)$/.exec(query) ?? [];
        return selector === '' ? [] : [`max by (${label}) (${selector})`];
      }),
    ];
    expect(asked.length).toBeGreaterThan(queries.length + 1);
    expect(
      asked.flatMap((query) => strangersIn(query, metrics).map((name) => `${name} in ${query}`)),
    ).toEqual([]);
  });

  it('selects values of labels that exist', () => {
    const selected = valuesIn(queries, OF_SITES);
    expect(selected.filter(({ label, one }) => !documentedValues(label).includes(one))).toEqual([]);
  });

  it('uses every variable that it has, and no others', () => {
    const used = [...text.matchAll(/\$\{?([a-z]+)\b/g)].map(([, name]) => name);
    expect([...new Set(used)].sort()).toEqual([...variables].sort());
    expect(queries.filter((query) => !query.includes('job="$job"'))).toEqual([]);
  });

  it('names alerts that exist, and links to the other dashboard', () => {
    const rules = readFileSync(projectFile('etc/prometheus/blazar-enforcement.rules.yml'), 'utf8');
    const named = panels.flatMap(
      ({ description = '' }) =>
        /\bAlerts? ((?:[A-Z]\w+(?: and )?)+)/.exec(description)?.[1]?.split(' and ') ?? [],
    );
    expect(named.length).toBeGreaterThan(0);
    expect(named.filter((alert) => !rules.includes(`- alert: ${alert}\n`))).toEqual([]);
    const other = dashboard === operators ? budgets : operators;
    expect(links.map(({ url }) => url)).toEqual([`/d/${other.uid}`]);
  });
});

it('every metric is on a dashboard, and those that need a token are on that of budgets', () => {
  const names = OWN_METRICS.map(({ name }) => name);
  const needToken = names.filter((name) => /_budget(_|s_omitted)/.test(name));
  const own = (queries: readonly string[]) => metricsIn(queries).filter((name) => names.includes(name));
  expect(needToken).toHaveLength(6);
  expect(own(queriesOf(budgets)).sort()).toEqual(needToken.sort());
  expect(own(queriesOf(operators)).sort()).toEqual(names.filter((name) => !needToken.includes(name)).sort());
});
