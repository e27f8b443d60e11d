/** The CustomResourceDefinition: the API server accepts it, and then refuses what the policy service could not read. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments, parseDocument, visit } from 'yaml';
import { z } from 'zod';
import type { Mapping } from '../../../src/base/yaml/tree.ts';
import {
  DRAFT_SPELLINGS,
  policySpecSchema,
} from '../../../src/kubernetes/policies/documents/policy-schema.ts';
import { API_GROUPS } from '../../../src/kubernetes/policies/policy.ts';
import { projectFile } from '../../support/files.ts';
import { structuralSchema } from '../../support/structural-schema.ts';
import { asStored, validatorOf } from './api-server.ts';
import { FOLDER, manifests, only } from './manifests.ts';
import { changed, specsOf } from './random-specs.ts';
import { structuralMistakes } from './structural-rules.ts';

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
  it('defines a resource of the whole cluster, with the names that the roles use', () => {
    expect(definition.metadata.name).toBe(`${spec.names.plural}.${spec.group}`);
    expect(spec).toMatchObject({
      scope: 'Cluster',
      names: { kind: 'SchedulingPolicy', plural: 'schedulingpolicies', shortNames: ['schedpol'] },
    });
    expect(API_GROUPS).toContain(spec.group);
    expect(spec.group, 'Kubernetes refuses a group without').toContain('.');
    expect(spec.versions).toHaveLength(1);
    expect(spec.versions[0]).toMatchObject({ name: 'v1alpha1', served: true, storage: true });
  });

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
      { numRuns: 800 },
    );
    expect(count.accepted, 'so that it is no comparison of refusals').toBeGreaterThan(80);
    expect(count.refused, 'nor of what is right').toBeGreaterThan(80);
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
