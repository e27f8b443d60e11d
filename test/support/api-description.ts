/** Reads `/openapi.json` like its clients: the description of a response, and whether a value matches it. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { openApiDocument, type Served } from '../../src/server/openapi/document.ts';

export type Schema = Readonly<Record<string, unknown>>;

export interface DescribedAnswer {
  readonly description: string;
  readonly headers: Readonly<Record<string, { readonly schema: Schema }>>;
  /** By media type; `undefined` = no body. */
  readonly content?: Readonly<
    Record<
      string,
      { readonly schema: Schema; readonly examples?: Readonly<Record<string, { value: unknown }>> }
    >
  >;
}

export interface DescribedOperation {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly security: readonly object[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { schema: Schema; example: unknown }>> };
  /** References to the responses by status. */
  readonly responses: Readonly<Record<string, { readonly $ref: string }>>;
}

interface ApiDescription {
  readonly openapi: string;
  readonly info: { readonly version: string; readonly license: { readonly identifier: string } };
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>;
  readonly components: Readonly<Record<string, Readonly<Record<string, unknown>>>> & {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly responses: Readonly<Record<string, DescribedAnswer>>;
  };
}

interface DescribedPath {
  readonly method: string;
  readonly path: string;
  readonly operation: DescribedOperation;
}

/** A document with readers. */
export interface Description {
  readonly document: ApiDescription;
  readonly operations: readonly DescribedPath[];
  /** The target of a reference; any other value is returned as is. */
  resolved(part: unknown): unknown;
  /** A validator for the schema of this name. */
  validatorOf(name: string): ValidateFunction;
  /** Violations of a schema of the document; `[]` = none. */
  mistakes(schema: Schema, value: unknown): string[];
}

const DOCUMENT = 'openapi.json';

/** The document after a JSON round trip, with what is served besides Blazar. */
export function descriptionWith(served: Served = {}): Description {
  const document = JSON.parse(JSON.stringify(openApiDocument(served))) as ApiDescription;
  // Strict: keywords unknown to JSON Schema are errors. Not for types: `not` uses attributes typed elsewhere.
  const ajv = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false, allErrors: true });
  ajv.addVocabulary(Object.keys(document));
  ajv.addSchema(document, DOCUMENT);
  const compiled = new WeakMap<Schema, ValidateFunction>();
  return {
    document,
    operations: Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
    ),
    resolved(part) {
      const reference = typeof part === 'object' && part !== null && '$ref' in part ? part.$ref : undefined;
      if (typeof reference !== 'string') {
        return part;
      }
      const found = reference
        .replace(/^#\//, '')
        .split('/')
        .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'))
        .reduce<unknown>((at, name) => (at as Record<string, unknown> | undefined)?.[name], document);
      if (found === undefined) {
        throw new Error(`${reference} leads nowhere`);
      }
      return found;
    },
    validatorOf(name) {
      const validate = ajv.getSchema(`${DOCUMENT}#/components/schemas/${name}`);
      if (validate === undefined) {
        throw new Error(`there is no schema ${name}`);
      }
      return validate;
    },
    mistakes(schema, value) {
      const validate =
        compiled.get(schema) ??
        ajv.compile(typeof schema.$ref === 'string' ? { $ref: `${DOCUMENT}${schema.$ref}` } : schema);
      compiled.set(schema, validate);
      validate(value);
      return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
    },
  };
}

/** For a service without SkyPilot. */
export const leaseDescription = descriptionWith();
export const { document: apiDescription, operations, resolved, validatorOf, mistakes } = leaseDescription;
