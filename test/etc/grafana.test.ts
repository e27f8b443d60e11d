/** The dashboards in etc/grafana, held against the metrics that there are. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { projectFile } from '../support/files.ts';
import { groupingIn, selectorsIn, strangersIn } from '../support/promql.ts';
import { asSent, dashboardNamed, queriesOf } from './dashboards.ts';
import { documentedValues, everyMetric, OWN_METRICS } from './documented-metrics.ts';

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
  const { places, panels, templating, links } = dashboard;
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
    const selected = queries
      .flatMap(selectorsIn)
      .flatMap(({ matchers }) => matchers)
      .filter(({ label }) => !OF_SITES.includes(label))
      .flatMap(({ label, value }) => value.split('|').map((one) => ({ label, one })));
    expect(selected.filter(({ label, one }) => !documentedValues(label).includes(one))).toEqual([]);
  });

  it('shows labels that the query leaves', () => {
    const wrong = panels.flatMap(({ targets }) =>
      targets.flatMap(({ expr, legendFormat }) => {
        const left = [...groupingIn(expr), ...(/\b(by|max|min|sum)\b/.test(expr) ? [] : ['instance'])];
        return [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)]
          .filter(([, label = '']) => !left.includes(label))
          .map(([shown]) => `${shown} of ${expr}`);
      }),
    );
    expect(wrong).toEqual([]);
  });

  it('shows durations in seconds, memory in bytes and hours of budgets in unit-hours', () => {
    const units = panels
      .filter(({ type }) => type !== 'table')
      .map(({ title, fieldConfig: { defaults }, targets }) => ({
        title,
        unit: defaults.unit,
        shown: targets.map(({ expr }) => unitOf(expr)),
      }));
    expect(units.filter(({ unit, shown }) => shown.some((one) => one !== undefined && one !== unit))).toEqual(
      [],
    );
  });

  it('uses every variable that it has, and no others', () => {
    const used = [...JSON.stringify({ places, templating }).matchAll(/\$\{?([a-z]+)\b/g)].map(
      ([, name]) => name,
    );
    expect([...new Set(used)].sort()).toEqual([...variables].sort());
    expect(queries.filter((query) => !query.includes('job="$job"'))).toEqual([]);
  });

  it('has ids of its own for each panel and each query of a panel', () => {
    const ids = places.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { targets } of panels) {
      const letters = targets.map(({ refId }) => refId);
      expect(new Set(letters).size).toBe(letters.length);
    }
    const titles = panels.map(({ title }) => title);
    expect(titles.filter((title, index) => titles.indexOf(title) !== index)).toEqual(
      dashboard === budgets ? ['Share taken'] : [],
    );
  });

  it('has panels that do not overlap', () => {
    expect(places.filter(({ gridPos: { x, w } }) => x + w > 24)).toEqual([]);
    const overlapping = places.flatMap(({ title, gridPos: one }, index) =>
      places
        .slice(index + 1)
        .filter(
          ({ gridPos: { x, y, w, h } }) =>
            x < one.x + one.w && one.x < x + w && y < one.y + one.h && one.y < y + h,
        )
        .map((other) => `${title}, ${other.title}`),
    );
    expect(overlapping).toEqual([]);
  });

  it('asks ranges for lines and single moments for the rest', () => {
    for (const { type, targets } of panels) {
      for (const target of targets) {
        expect([target.range, target.instant]).toEqual(
          type === 'timeseries' ? [true, undefined] : [undefined, true],
        );
        expect(target.format).toBe(type === 'table' ? 'table' : undefined);
      }
    }
  });

  it('leaves no variable of Grafana in a query', () => {
    expect(
      queries.map((query) => asSent(query, { project: 'climate' })).filter((query) => query.includes('$')),
    ).toEqual([]);
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
  expect(needToken).toHaveLength(4);
  expect(own(queriesOf(budgets)).sort()).toEqual(needToken.sort());
  expect(own(queriesOf(operators)).sort()).toEqual(names.filter((name) => !needToken.includes(name)).sort());
});

/** Of the value of a query; `undefined` = a count, or something else without a fixed unit. */
function unitOf(query: string): string | undefined {
  if (query.startsWith('histogram_quantile(')) {
    return 's';
  }
  if (/\) \/ /.test(query)) {
    return 'percentunit';
  }
  const [metric = ''] = selectorsIn(query).map(({ metric: name }) => name);
  return /rate\(|increase\(/.test(query)
    ? undefined
    : /_seconds$/.test(metric)
      ? 's'
      : /_bytes$/.test(metric)
        ? 'bytes'
        : /_hours$/.test(metric)
          ? 'suffix: unit-hours'
          : undefined;
}
