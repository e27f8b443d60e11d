/** The dashboards in etc/grafana, as far as tests read them. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { projectFile } from '../support/files.ts';

const panelSchema = z.object({
  type: z.enum(['timeseries', 'stat', 'gauge', 'bargauge', 'table', 'row']),
  title: z.string().min(1),
  description: z.string().optional(),
  targets: z
    .array(
      z.object({
        // A variable, so that a site chooses its Prometheus.
        datasource: z.object({ type: z.literal('prometheus'), uid: z.string().regex(/^\$\{datasource\}$/) }),
        expr: z.string().min(1),
      }),
    )
    .default([]),
});

const dashboardSchema = z.object({
  uid: z.string().max(40),
  // Grafana gives it one.
  id: z.null(),
  // Of Grafana 13. Older dashboards are migrated when they are loaded, newer ones are not read.
  schemaVersion: z.literal(42),
  links: z.array(z.object({ type: z.literal('link'), url: z.string() })),
  templating: z.object({
    list: z.array(
      z.discriminatedUnion('type', [
        z.object({ name: z.literal('datasource'), type: z.literal('datasource') }),
        z.object({ name: z.string(), type: z.literal('query'), query: z.object({ query: z.string() }) }),
      ]),
    ),
  }),
  panels: z.array(panelSchema),
});

export type Dashboard = z.infer<typeof dashboardSchema> & { readonly text: string };

/** `panels`: without rows. */
export function dashboardNamed(name: 'operators' | 'budgets'): Dashboard {
  const text = readFileSync(projectFile(`etc/grafana/${name}.json`), 'utf8');
  const dashboard = dashboardSchema.parse(JSON.parse(text));
  return { ...dashboard, text, panels: dashboard.panels.filter(({ type }) => type !== 'row') };
}

export function queriesOf({ panels }: Dashboard): string[] {
  return panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
}

/** The query with values for what Grafana replaces, as Prometheus gets it. `values`: of the dashboard's variables. */
export function asSent(query: string, values: Readonly<Record<string, string>> = {}): string {
  const all = { job: 'blazar-enforcement', instance: '.*', ...values, __rate_interval: '5m', __range: '1h' };
  return query.replace(/\$(\w+)/g, (variable, name: string) => all[name as keyof typeof all] ?? variable);
}
