/** The examples for Loki and OpenTelemetry's collector: the fields and attributes that they name are those of real lines and spans. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { YamlDocument } from '../../src/base/yaml/document.ts';
import { decisionRecordSchema } from '../../src/decisions/record.ts';
import { confFile, projectFile, valuesOnly } from '../support/files.ts';
import { spansSince, withRecordedSpans } from '../support/recorded-spans.ts';
import { createLasting } from '../support/requests.ts';
import { runCommand } from '../support/run-command.ts';

const alloy = readFileSync(projectFile('etc/alloy/blazar-enforcement.alloy'), 'utf8');
const collector = z
  .looseObject({
    receivers: z.record(z.string(), z.unknown()),
    processors: z.record(z.string(), z.unknown()),
    exporters: z.record(z.string(), z.unknown()),
    service: z.strictObject({
      pipelines: z.record(
        z.string(),
        z.strictObject({
          receivers: z.array(z.string()),
          processors: z.array(z.string()),
          exporters: z.array(z.string()),
        }),
      ),
    }),
  })
  .parse(YamlDocument.parse(readFileSync(projectFile('etc/opentelemetry/collector.yaml'), 'utf8')).value);

/** In lines about a request to the service: test/server/tracing.proof.test.ts sees the first in both logs. */
const OF_SERVICE = ['trace_id', 'request_id'];
const RECORD_FIELDS = Object.keys(decisionRecordSchema.shape);

/** A line that the command has logged. */
let logged: Promise<Readonly<Record<string, unknown>>> | undefined;
function loggedLine() {
  logged ??= logLine();
  return logged;
}

async function logLine() {
  const conf = confFile(
    '[enforcement]\nenabled_filters = ExternalServiceFilter\nexternal_service_base_endpoint = http://127.0.0.1:1\n',
  );
  const request = projectFile('examples/requests/create-one-day.json');
  const { stderr } = await runCommand(['check', 'create', '--config-file', conf, request]);
  return z.record(z.string(), z.unknown()).parse(JSON.parse(stderr.split('\n')[0] ?? ''));
}

/** The fields that the part of the collector's configuration names. */
const attributesIn = (part: unknown): string[] => [
  ...new Set([...JSON.stringify(part).matchAll(/"(?:attributes\.(\w+))[" ]/g)].map(([, name = '']) => name)),
];

describe('the configuration of the collector', () => {
  it('names fields of lines of the log', async () => {
    const line = await loggedLine();
    const named = attributesIn(collector.receivers.journald);
    expect(named).toContain('msg');
    expect(named.filter((name) => !OF_SERVICE.includes(name) && !(name in line))).toEqual([]);
    expect(line).toMatchObject({ time: expect.any(Number), level: 50, msg: 'filter failed' });
  });
});

describe('the configuration of Alloy', () => {
  const partOf = (name: string) =>
    new RegExp(`^loki\\.process "${name}" \\{\n([\\s\\S]*?)^\\}`, 'm').exec(alloy)?.[1] ?? '';
  /** Names that a stage reads, and names that it makes of them. */
  const mapOf = (part: string, stage: string, attribute: string) => {
    const [, map = ''] =
      new RegExp(`stage\\.${stage} \\{\\s*${attribute}\\s*=\\s*\\{(.*)\\}`).exec(part) ?? [];
    return [...map.matchAll(/(\w+) = "(\w*)"/g)].map(([, name = '', from = '']) => ({ name, from }));
  };

  it.each(['log', 'decisions'])('reads fields that %s has, and keeps only what it reads', async (name) => {
    const line = await loggedLine();
    const part = partOf(name);
    const read = mapOf(part, 'json', 'expressions');
    expect(read.length).toBeGreaterThan(2);
    const known = name === 'log' ? [...Object.keys(line), ...OF_SERVICE] : RECORD_FIELDS;
    expect(read.filter(({ from }) => !known.includes(from))).toEqual([]);
    const kept = [...mapOf(part, 'labels', 'values'), ...mapOf(part, 'structured_metadata', 'values')];
    const names = read.map((one) => one.name);
    expect(kept.map((one) => one.name).sort()).toEqual(names.filter((one) => one !== 'time').sort());
  });
});

describe('spans', () => {
  let library: typeof import('../../src/index.ts');
  withRecordedSpans(async () => {
    library = await import('../../src/index.ts');
  });

  it('have the attributes that the collector keeps traces by', async () => {
    const enforcement = await library.UsageEnforcement.load(
      valuesOnly({ enforcement: { enabled_filters: ['MaxLeaseDurationFilter'], max_lease_duration: 3600 } }),
    );
    await enforcement.checkCreate(createLasting(7200));
    await enforcement.close();
    const attributes = Object.assign({}, ...spansSince().map((span) => span.attributes));
    const kept = JSON.stringify(collector.processors.tail_sampling);
    const keys = [...kept.matchAll(/"key":"([^"]+)"/g)].map(([, key = '']) => key);
    expect(keys).toEqual(['blazar_enforcement.filter.failed', 'blazar_enforcement.filter.verdict']);
    expect(keys.map((key) => attributes[key])).toEqual([false, 'rejected']);
    expect(kept).toContain('"values":["rejected"]');
  });
});
