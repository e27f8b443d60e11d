/** What /openapi.json must satisfy, with every section beside Blazar's own. */
import { Validator } from '@seriousme/openapi-schema-validator';
import { expect, it } from 'vitest';
import { apiDescription, type Description } from '../support/api-description.ts';

/** Declares tests for a description with further paths, which are these. */
export function itIsSoundWith(api: Description, paths: readonly string[]): void {
  it('is valid OpenAPI 3.1', async () => {
    expect(await new Validator().validate({ ...api.document })).toEqual({ valid: true });
  });

  it('changes nothing in the description of other paths', () => {
    const others = Object.entries(api.document.paths).filter(([path]) => !paths.includes(path));
    expect(Object.fromEntries(others)).toEqual(apiDescription.paths);
    for (const [kind, parts] of Object.entries(apiDescription.components)) {
      expect(api.document.components[kind]).toMatchObject(parts);
    }
  });

  it('refers only to existing components, and to all of them', () => {
    const references = [...JSON.stringify(api.document).matchAll(/"\$ref":"([^"]+)"/g)].map(
      ([, one = '']) => one,
    );
    const { securitySchemes: _, ...components } = api.document.components;
    const parts = Object.entries(components).flatMap(([kind, named]) =>
      Object.keys(named).map((name) => `#/components/${kind}/${name}`),
    );
    expect([...new Set(references)].sort()).toEqual(parts.sort());
  });

  it('has valid examples of values, requests and responses', () => {
    for (const [name, schema] of Object.entries(api.document.components.schemas)) {
      for (const example of (schema.examples ?? []) as unknown[]) {
        expect({ name, example, mistakes: api.mistakes(schema, example) }).toMatchObject({ mistakes: [] });
      }
    }
    const operations = Object.values(api.document.paths).flatMap((methods) => Object.values(methods));
    for (const { operationId, requestBody } of operations) {
      for (const { schema, example } of Object.values(requestBody?.content ?? {})) {
        const mistakes = api.mistakes(schema, example);
        expect({ operationId, mistakes }).toEqual({ operationId, mistakes: [] });
      }
    }
    for (const { content = {} } of Object.values(api.document.components.responses)) {
      for (const { schema, examples = {} } of Object.values(content)) {
        for (const { value } of Object.values(examples)) {
          expect({ value, mistakes: api.mistakes(schema, value) }).toMatchObject({ mistakes: [] });
        }
      }
    }
  });
}
