/** The alerts in etc/prometheus, held against the metrics that there are. The proof beside this file tries them with promtool. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { YamlDocument } from '../../src/base/yaml/document.ts';
import { namesUnder, pageNamed } from '../docs/markdown.ts';
import { projectFile } from '../support/files.ts';
import { documentedValues, everyMetric } from './documented-metrics.ts';
import { strangersIn, valuesIn } from './promql.ts';

const read = (name: string) =>
  YamlDocument.parse(readFileSync(projectFile(`etc/prometheus/${name}`), 'utf8')).value;

const [{ rules }] = z
  .strictObject({
    groups: z.tuple([
      z.strictObject({
        name: z.literal('blazar-enforcement'),
        rules: z.array(
          z.strictObject({
            alert: z.string(),
            expr: z.string(),
            for: z
              .string()
              .regex(/^\d+[mh]$/)
              .optional(),
            labels: z.strictObject({ severity: z.enum(['critical', 'warning']) }),
          }),
        ),
      }),
    ]),
  })
  .parse(read('blazar-enforcement.rules.yml')).groups;

const { tests } = z
  .looseObject({
    rule_files: z.tuple([z.literal('blazar-enforcement.rules.yml')]),
    tests: z.array(
      z.looseObject({
        name: z.string(),
        input_series: z.array(z.strictObject({ series: z.string(), values: z.string() })),
        alert_rule_test: z.array(
          z.strictObject({ alertname: z.string(), eval_time: z.string(), exp_alerts: z.array(z.unknown()) }),
        ),
      }),
    ),
  })
  .parse(read('blazar-enforcement.rules-test.yml'));

describe('the alerts', () => {
  it('are explained one by one', () => {
    expect(namesUnder(pageNamed('docs/reference/metrics.md'), 'Alerts')).toEqual(
      rules.map(({ alert }) => alert),
    );
  });

  it('are critical where the page has it so', () => {
    const [line = ''] =
      /^`severity` is `critical` .*$/m.exec(readFileSync(projectFile('docs/reference/metrics.md'), 'utf8')) ??
      [];
    const critical = rules.filter(({ labels }) => labels.severity === 'critical').map(({ alert }) => alert);
    expect(line.match(/(?<=`)[A-Z]\w+(?=`)/g)).toEqual(critical);
  });

  it('use metrics and labels that exist', async () => {
    const metrics = await everyMetric();
    expect(
      rules.flatMap(({ alert, expr }) => strangersIn(expr, metrics).map((name) => `${name} in ${alert}`)),
    ).toEqual([]);
  });

  it('select values of labels that exist', () => {
    const selected = valuesIn(
      rules.map(({ expr }) => expr),
      ['job', 'path', 'status'],
    );
    expect(selected.length).toBeGreaterThan(5);
    expect(selected.filter(({ label, one }) => !documentedValues(label).includes(one))).toEqual([]);
  });

  it('are each tried when they fire, and when they do not', () => {
    const tried = (isFiring: boolean) => [
      ...new Set(
        tests
          .flatMap(({ alert_rule_test }) => alert_rule_test)
          .filter(({ exp_alerts }) => exp_alerts.length > 0 === isFiring)
          .map(({ alertname }) => alertname),
      ),
    ];
    const alerts = rules.map(({ alert }) => alert).sort();
    expect(tried(true).sort()).toEqual(alerts);
    expect(tried(false).sort()).toEqual(alerts);
  });
});
