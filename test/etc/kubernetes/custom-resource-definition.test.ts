/** The CustomResourceDefinition: the API server accepts it, and then refuses what the policy service could not read. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments, parseDocument, visit } from 'yaml';
import { z } from 'zod';
import { isMapping, type Mapping } from '../../../src/base/yaml/tree.ts';
import {
  DRAFT_SPELLINGS,
  policySpecSchema,
} from '../../../src/kubernetes/policies/documents/policy-schema.ts';
import { projectFile } from '../../support/files.ts';
import { FOLDER, manifests, only } from './manifests.ts';
import { changed, specsOf } from './random-specs.ts';
import { structuralMistakes } from './structural-rules.ts';

/** What zod has to say and Kubernetes doesn't: it refuses unknown fields by itself. */
const WITHOUT_WORD = ['$schema', 'additionalProperties', 'propertyNames', 'const', 'anyOf'];

/**
 * A structural schema that accepts what this one does. Knows the keywords that are used here, and passes the others on: what
 * Kubernetes would not take is for `structuralMistakes` to find.
 */
function structuralSchema(schema: unknown): Mapping {
  if (!isMapping(schema)) {
    throw new TypeError(`expected a schema, got ${JSON.stringify(schema)}`);
  }
  const { additionalProperties, propertyNames, const: only, anyOf } = schema;
  const kept = Object.entries(schema)
    .filter(([keyword]) => !WITHOUT_WORD.includes(keyword))
    .map(([keyword, value]) => [keyword, below(keyword, value)]);
  return {
    ...(anyOf === undefined ? {} : alternatives(anyOf)),
    ...(only === undefined ? {} : { enum: [only] }),
    ...Object.fromEntries(kept),
    ...(isMapping(additionalProperties)
      ? { additionalProperties: structuralSchema(additionalProperties) }
      : {}),
    ...(isMapping(propertyNames) ? names(propertyNames) : {}),
    ...extensions(schema),
  };
}

/**
 * Unknown fields are kept, for the webhook to refuse: without that the API server drops them, and a rule with a typing mistake is
 * empty. Lists and mappings of labels are one part: what several appliers merge could become empty, which means everything.
 */
function extensions({ type, properties, additionalProperties }: Mapping): Mapping {
  return {
    ...(type === 'object' && isMapping(properties) && { 'x-kubernetes-preserve-unknown-fields': true }),
    ...(type === 'object' && isMapping(additionalProperties) && { 'x-kubernetes-map-type': 'atomic' }),
    ...(type === 'array' && { 'x-kubernetes-list-type': 'atomic' }),
  };
}

function below(keyword: string, value: unknown): unknown {
  if (keyword === 'properties' && isMapping(value)) {
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, structuralSchema(one)]));
  }
  return keyword === 'items' ? structuralSchema(value) : value;
}

/** The only ones that have a word: something, or null. */
function alternatives(anyOf: unknown): Mapping {
  if (!Array.isArray(anyOf)) {
    throw new TypeError('expected a list under anyOf');
  }
  const others = anyOf.filter((one) => one.type !== 'null');
  if (anyOf.length !== 2 || others.length !== 1) {
    throw new TypeError(`expected something or null under anyOf, got ${JSON.stringify(anyOf)}`);
  }
  return { ...structuralSchema(others[0]), nullable: true };
}

/** Of the names in a mapping it can only be said which must not be there. */
function names({ type, minLength, ...others }: Mapping): Mapping {
  if (type !== 'string' || Object.keys(others).length > 0 || (minLength !== undefined && minLength !== 1)) {
    throw new TypeError(
      `expected names that are not empty, got ${JSON.stringify({ type, minLength, ...others })}`,
    );
  }
  return minLength === undefined ? {} : { not: { required: [''] } };
}

/** Whether the API server accepts a value. Unknown fields are refused, as by the webhook for policies. */
function validatorOf(structural: Mapping): (value: unknown) => boolean {
  const ajv = new Ajv({ strict: true, strictTypes: false, strictRequired: false });
  const validate = ajv.compile(forAjv(structural));
  return (value) => validate(value);
}

/** The API server first drops null fields that must not be null. */
function asStored(value: unknown, structural: unknown): unknown {
  if (!isMapping(structural)) {
    return value;
  }
  if (Array.isArray(value)) {
    return value.map((item) => asStored(item, structural.items));
  }
  if (!isMapping(value)) {
    return value;
  }
  const { properties, additionalProperties } = structural;
  const schemaOf = (name: string) => (isMapping(properties) ? properties[name] : additionalProperties);
  const isKept = (name: string, one: unknown) => {
    const schema = schemaOf(name);
    return one !== null || !isMapping(schema) || schema.nullable === true;
  };
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name, one]) => isKept(name, one))
      .map(([name, one]) => [name, asStored(one, schemaOf(name))]),
  );
}

/** For null the API server checks only the type, and ignores even `not`. */
function forAjv({ nullable, ...structural }: Mapping): Mapping {
  const { type, properties, additionalProperties, items, not } = structural;
  const isClosed = type === 'object' && additionalProperties === undefined;
  const known = Object.entries(structural).filter(([keyword]) => !keyword.startsWith('x-kubernetes-'));
  const translated = {
    ...Object.fromEntries(known),
    ...(isClosed ? { additionalProperties: false } : {}),
    ...(isMapping(additionalProperties) ? { additionalProperties: forAjv(additionalProperties) } : {}),
    ...(isMapping(items) ? { items: forAjv(items) } : {}),
    ...(isMapping(properties) ? { properties: mapped(properties) } : {}),
    ...(isMapping(not) ? notForAjv(not) : {}),
    ...Object.fromEntries(
      ['allOf', 'anyOf', 'oneOf'].flatMap((name) => {
        const list = structural[name];
        return Array.isArray(list) ? [[name, list.map(forAjv)]] : [];
      }),
    ),
  };
  return nullable === true || type === undefined ? { anyOf: [{ type: 'null' }, translated] } : translated;
}

function mapped(properties: Mapping): Mapping {
  return Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, forAjv(one as Mapping)]));
}

/** For ajv 8 an object always has the empty name. */
function notForAjv(not: Mapping): Mapping {
  return JSON.stringify(not) === '{"required":[""]}'
    ? { not: { type: 'object', not: { propertyNames: { minLength: 1 } } } }
    : { not: forAjv(not) };
}

const EXAMPLES = projectFile('test/fixtures/kubernetes/proposal');

/** In characters. */
const SHORT = 90;
const FILE = join(FOLDER, 'custom-resource-definition.yaml');
const definition = only(manifests('custom-resource-definition.yaml'), 'CustomResourceDefinition');
const { spec } = definition;
const schema = spec.versions[0]?.schema.openAPIV3Schema;
const specSchema = schema.properties.spec as Mapping;

const accepts = validatorOf(specSchema);

describe('etc/kubernetes/custom-resource-definition.yaml', () => {
  it('has a structural schema', () => {
    expect(structuralMistakes(schema)).toEqual([]);
    expect(schema.required).toEqual(['spec']);
  });

  it('has a status that only its own subresource changes, with a condition of each type once', () => {
    expect(spec.versions[0]).toMatchObject({ subresources: { status: {} } });
    const { conditions, observedGeneration } = schema.properties.status.properties;
    expect(observedGeneration).toMatchObject({ type: 'integer', format: 'int64' });
    expect(conditions).toMatchObject({
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['type'],
    });
    const columns: Mapping[] = spec.versions[0]?.additionalPrinterColumns ?? [];
    expect(columns.map(({ name }) => name).slice(0, 2)).toEqual(['Accepted', 'Enforced']);
  });

  it('has the schema of the policy service for `spec`', async () => {
    const current = structuralSchema(z.toJSONSchema(policySpecSchema));
    expect.soft(specSchema).toEqual(current);
    // `npx vitest run test/etc/kubernetes --update` brings the file up to date.
    await expect(withSpecSchema(current)).toMatchFileSnapshot(FILE);
  });

  it('accepts and refuses the examples of the proposal as the policy service does', () => {
    const specs = readdirSync(EXAMPLES)
      .flatMap((name) => parseAllDocuments(readFileSync(`${EXAMPLES}/${name}`, 'utf8')))
      .map((document) => document.toJS())
      .filter((document) => (document.kind ?? document.Kind) === 'SchedulingPolicy')
      .map((document) => document.spec);
    expect(specs.length).toBeGreaterThan(30);
    const verdicts = specs.map((one) => agreedVerdict(one));
    expect(verdicts).toContain(true);
    expect(verdicts).toContain(false);
    const written = JSON.stringify(specs);
    const spellings = [...DRAFT_SPELLINGS].filter((name) => name !== 'Kind' && written.includes(`"${name}"`));
    expect(spellings).toContain('SchedulerNames');
    expect(spellings).toContain('allowedAffinities');
  });

  it('accepts and refuses random specs as the policy service does', () => {
    const count = { accepted: 0, refused: 0 };
    fc.assert(
      fc.property(changed(specsOf(specSchema)), (one) => {
        count[agreedVerdict(one) ? 'accepted' : 'refused'] += 1;
      }),
      { numRuns: 300 },
    );
    expect(count.accepted, 'so that it is no comparison of refusals').toBeGreaterThan(30);
    expect(count.refused, 'nor of what is right').toBeGreaterThan(30);
  });

  it.each([
    ['a list of required schedulers that is empty', { required: { schedulerNames: [] } }],
    ['both spellings', { allowed: { schedulerNames: [], SchedulerNames: [] } }],
    [
      'a default toleration with Exists and a value',
      { default: { tolerations: [{ operator: 'Exists', value: '' }] } },
    ],
    [
      'a kind of affinity nested too deep',
      { allowed: { affinities: { nodeAffinities: { podAffinities: {} } } } },
    ],
    ['a label without a name', { default: { nodeSelector: { '': 'x' } } }],
    ['an unknown field', { permitted: {} }],
  ])('refuses %s', (_, one) => {
    expect(agreedVerdict(one)).toBe(false);
  });
});

/** Whether a spec is accepted, by both: as it is written, and as the API server stores it. */
function agreedVerdict(one: unknown): boolean {
  const stored = asStored(one, specSchema);
  for (const form of [stored, one]) {
    const parsed = policySpecSchema.safeParse(form);
    const message = `${JSON.stringify(form)}: ${JSON.stringify(parsed.error?.issues ?? 'the service reads it')}`;
    expect(accepts(form), message).toBe(parsed.success);
  }
  return accepts(one);
}

/** The file with another schema of `spec`; what is short is on one line. */
function withSpecSchema(current: Mapping): string {
  const document = parseDocument(readFileSync(FILE, 'utf8'));
  const node = document.createNode(current, { aliasDuplicateObjects: false });
  visit(node, {
    Collection: (_, collection) => {
      collection.flow = JSON.stringify(collection).length < SHORT;
    },
  });
  document.setIn(['spec', 'versions', 0, 'schema', 'openAPIV3Schema', 'properties', 'spec'], node);
  return document.toString({ lineWidth: 120, singleQuote: true, flowCollectionPadding: false });
}
