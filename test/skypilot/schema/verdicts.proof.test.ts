/**
 * Thousands of right and wrong configurations and tasks, beside SkyPilot's own validation. Needs `SKYPILOT_SOURCE`, a checkout of
 * SkyPilot, and python3 with its dependencies (or stand-ins for them in `PYTHONPATH`, which a module `sky_stub` installs).
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { YamlDocument } from '../../../src/base/yaml/document.ts';
import type { Mapping } from '../../../src/base/yaml/tree.ts';
import { SCHEMA_NAMES, SCHEMA_VERSION, schemaOf } from '../../../src/skypilot/schema/json-schema.ts';
import { taskSchema, validateConfig, validateTask } from '../../../src/skypilot/schema/validate.ts';
import { differences, normalForm } from '../../../tools/skypilot-schema/differences.ts';
import { runWithSkypilot, skypilotSource } from '../../support/skypilot-source.ts';
import { mutated, sampleOf, textOf } from './samples.ts';

const SOURCE = skypilotSource();

/** Answers each value with whether a schema refuses it. `other` = refused, but not by a schema. */
const PEER = `
import copy, os
os.environ['IS_SKYPILOT_SERVER'] = '1'
from sky import task as task_lib
from sky.server import plugins
from sky.utils import common_utils, schemas, yaml_utils
plugins.plugins_loaded = lambda: True
config_schema = schemas.get_config_schema()

refused = False
by_schema = common_utils.validate_schema

def validate_schema(*args, **named):
    global refused
    refused = True
    by_schema(*args, **named)
    refused = False

common_utils.validate_schema = validate_schema

def config(value):
    common_utils.validate_schema(value, config_schema, skip_none=False)

def verdict(check, value):
    global refused
    refused = False
    try:
        check(yaml_utils.safe_load(value) if isinstance(value, str) else copy.deepcopy(value))
        return 'valid'
    except Exception as thrown:
        return 'invalid' if refused or 'Cannot specify both gpus' in str(thrown) else 'other'

check = config if asked['kind'] == 'config' else task_lib.Task.from_yaml_config
answers = [verdict(check, value) for value in asked['values']]
`;

/** What SkyPilot says to each: to a value, or to a text in YAML, which it reads first. */
const verdictsOn = (kind: 'config' | 'task', values: readonly (Mapping | string)[]) =>
  runWithSkypilot<string>(SOURCE ?? '', PEER, { kind, values });

/** The values whose verdict differs from ours, and how many there are of each verdict. */
function compared(kind: 'config' | 'task', values: readonly (Mapping | string)[]) {
  const validate = kind === 'config' ? validateConfig : validateTask;
  const counts: Record<string, number> = {};
  const different: unknown[] = [];
  for (const [index, verdict] of verdictsOn(kind, values).entries()) {
    const value = values[index] ?? {};
    const typed = typeof value === 'string' ? (YamlDocument.parse(value).typed as Mapping) : value;
    const problems = validate(typed, () => undefined);
    counts[verdict] = (counts[verdict] ?? 0) + 1;
    if (verdict !== 'other' && (problems.length === 0) !== (verdict === 'valid')) {
      different.push({ value: JSON.stringify(value), verdict, problems });
    }
  }
  return { counts, different: different.slice(0, 5) };
}

/** Prints all schemas, as a server applies them. */
const DUMP = `
import os
os.environ['IS_SKYPILOT_SERVER'] = '1'
from sky.server import plugins
from sky.server.constants import API_VERSION
from sky.utils import schemas
plugins.plugins_loaded = lambda: True
dump = {name: getattr(schemas, f'get_{name}_schema')() for name in asked}
answers = json.loads(json.dumps([API_VERSION, dump], default=list))
`;

const RUNS = 4000;

const KINDS = [
  ['config', schemaOf('config')],
  ['task', taskSchema()],
] as const;

describe.skipIf(SOURCE === undefined)("SkyPilot's own validation", () => {
  it('has the schemas that are here', () => {
    const [version, schemas] = runWithSkypilot(SOURCE ?? '', DUMP, SCHEMA_NAMES) as [
      number,
      Readonly<Record<string, Parameters<typeof normalForm>[0]>>,
    ];
    expect(version).toBe(SCHEMA_VERSION.apiVersion);
    for (const name of SCHEMA_NAMES) {
      expect(differences({ ...schemaOf(name) }, normalForm(schemas[name] ?? {})), name).toEqual([]);
    }
  });

  it.for(KINDS)('agrees on every %s', ([kind, schema]) => {
    const values = fc.sample(
      sampleOf(schema).chain((value) => mutated(value, schema)),
      RUNS,
    ) as Mapping[];
    const { counts, different } = compared(kind, values);
    expect(different).toEqual([]);
    expect(counts.valid).toBeGreaterThan(RUNS / 10);
    expect(counts.invalid).toBeGreaterThan(RUNS / 10);
  });

  it.for(KINDS)('agrees on every %s whose scalars are written without quotes', ([kind, schema]) => {
    const texts = fc.sample(
      sampleOf(schema).chain((value) => textOf(value as Mapping)),
      RUNS,
    );
    const { counts, different } = compared(kind, texts);
    expect(different).toEqual([]);
    expect(counts.valid).toBeGreaterThan(RUNS / 20);
    expect(counts.invalid).toBeGreaterThan(RUNS / 20);
  });
});
