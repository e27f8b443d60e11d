/** The dashboards in etc/grafana, as far as tests read them. Panels and variables of other types are errors. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { projectFile } from '../support/files.ts';

/** A variable, so that a site chooses its Prometheus. */
const datasourceSchema = z.strictObject({
  type: z.literal('prometheus'),
  uid: z.string().regex(/^\$\{datasource\}$/),
});
const stepsSchema = z.array(z.strictObject({ color: z.string(), value: z.number().nullable() })).min(1);

const gridSchema = z.strictObject({
  x: z.int().min(0),
  y: z.int().min(0),
  w: z.int().min(1).max(24),
  h: z.int().min(1),
});

/** Grafana's names of units, of those that we use. */
const UNITS = ['none', 'short', 's', 'bytes', 'percentunit', 'reqps', 'ops', 'suffix: unit-hours'] as const;

const targetSchema = z.strictObject({
  refId: z.string().regex(/^[A-Z]$/),
  datasource: datasourceSchema,
  editorMode: z.literal('code'),
  expr: z.string().min(1),
  legendFormat: z.string(),
  range: z.literal(true).optional(),
  instant: z.literal(true).optional(),
  format: z.literal('table').optional(),
});

const panelSchema = z.strictObject({
  id: z.int().min(1),
  type: z.enum(['timeseries', 'stat', 'gauge', 'bargauge', 'table']),
  title: z.string().min(1),
  description: z.string().min(1).optional(),
  datasource: datasourceSchema,
  gridPos: gridSchema,
  fieldConfig: z.strictObject({
    defaults: z.looseObject({
      unit: z.enum(UNITS),
      thresholds: z.strictObject({ mode: z.literal('absolute'), steps: stepsSchema }).optional(),
    }),
    overrides: z.array(z.unknown()),
  }),
  options: z.looseObject({}),
  targets: z.array(targetSchema).min(1),
  transformations: z
    .array(z.strictObject({ id: z.enum(['merge', 'organize']), options: z.looseObject({}) }))
    .optional(),
});

const rowSchema = z.strictObject({
  id: z.int().min(1),
  type: z.literal('row'),
  title: z.string().min(1),
  collapsed: z.literal(false),
  gridPos: gridSchema,
  panels: z.tuple([]),
});

const ofVariables = {
  label: z.string().min(1),
  refresh: z.literal([1, 2]),
  regex: z.literal(''),
  multi: z.boolean(),
  includeAll: z.boolean(),
  current: z.strictObject({}),
  options: z.tuple([]),
  hide: z.literal(0),
};

const variableSchema = z.discriminatedUnion('type', [
  z.strictObject({
    ...ofVariables,
    name: z.literal('datasource'),
    type: z.literal('datasource'),
    query: z.literal('prometheus'),
  }),
  z.strictObject({
    ...ofVariables,
    name: z.string().regex(/^[a-z]+$/),
    type: z.literal('query'),
    datasource: datasourceSchema,
    definition: z.string(),
    query: z.strictObject({ query: z.string(), refId: z.string() }),
    sort: z.literal(1),
    allValue: z.literal('.*').optional(),
  }),
]);

const dashboardSchema = z.strictObject({
  uid: z
    .string()
    .regex(/^[a-z-]+$/)
    .max(40),
  // Grafana gives it one.
  id: z.null(),
  title: z.string().min(1),
  description: z.string().min(1),
  tags: z.tuple([z.literal('blazar-enforcement')]),
  // Of Grafana 13. Older dashboards are migrated when they are loaded, newer ones are not read.
  schemaVersion: z.literal(42),
  version: z.literal(1),
  editable: z.literal(true),
  graphTooltip: z.literal(1),
  fiscalYearStartMonth: z.literal(0),
  preload: z.literal(false),
  timezone: z.literal('browser'),
  weekStart: z.literal(''),
  refresh: z.enum(['1m', '5m']),
  time: z.strictObject({ from: z.string().regex(/^now-\d+[hd]$/), to: z.literal('now') }),
  timepicker: z.strictObject({}),
  annotations: z.strictObject({ list: z.array(z.looseObject({ builtIn: z.literal(1) })).length(1) }),
  links: z.array(z.looseObject({ type: z.literal('link'), url: z.string().startsWith('/d/') })),
  templating: z.strictObject({ list: z.array(variableSchema) }),
  panels: z.array(z.discriminatedUnion('type', [panelSchema, rowSchema])),
});

export type Panel = z.infer<typeof panelSchema>;

export interface Dashboard extends Omit<z.infer<typeof dashboardSchema>, 'panels'> {
  /** With rows. */
  readonly places: readonly (Panel | z.infer<typeof rowSchema>)[];
  readonly panels: readonly Panel[];
}

export function dashboardNamed(name: 'operators' | 'budgets'): Dashboard {
  const text = readFileSync(projectFile(`etc/grafana/${name}.json`), 'utf8');
  const { panels: places, ...dashboard } = dashboardSchema.parse(JSON.parse(text));
  return { ...dashboard, places, panels: places.filter((place): place is Panel => place.type !== 'row') };
}

export function queriesOf({ panels }: Dashboard): string[] {
  return panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
}

/** The query with values for what Grafana replaces, as Prometheus gets it. `values`: of the dashboard's variables. */
export function asSent(query: string, values: Readonly<Record<string, string>> = {}): string {
  const all = { job: 'blazar-enforcement', instance: '.*', ...values, __rate_interval: '5m', __range: '1h' };
  return query.replace(/\$(\w+)/g, (variable, name: string) => all[name as keyof typeof all] ?? variable);
}
