/** `/openapi.json` as its readers take it: what it says of an answer, and whether a value is what it says. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { openApiDocument, type Served } from '../../src/server/openapi/document.ts';

export type Schema = Readonly<Record<string, unknown>>;

export interface DescribedAnswer {
  readonly description: string;
  readonly headers: Readonly<Record<string, { readonly schema: Schema }>>;
  /** By media type; `undefined`: there is no body. */
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
  /** By status: where in the document the answer stands. */
  readonly responses: Readonly<Record<string, { readonly $ref: string }>>;
}

export interface ApiDescription {
  readonly openapi: string;
  readonly info: { readonly version: string; readonly license: { readonly identifier: string } };
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>;
  readonly components: Readonly<Record<string, Readonly<Record<string, unknown>>>> & {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly responses: Readonly<Record<string, DescribedAnswer>>;
  };
}

export interface DescribedPath {
  readonly method: string;
  readonly path: string;
  readonly operation: DescribedOperation;
}

/** A document, and how its readers take it. */
export interface Description {
  readonly document: ApiDescription;
  readonly operations: readonly DescribedPath[];
  /** What a reference leads to; anything else is itself. */
  resolved(part: unknown): unknown;
  /** A check by the schema of this name. */
  validatorOf(name: string): ValidateFunction;
  /** What is wrong with a value by a schema of the document, in words; `[]` = nothing. */
  mistakes(schema: Schema, value: unknown): string[];
}

const DOCUMENT = 'openapi.json';

/** The document as it is after its way through JSON, with what is served besides Blazar. */
export function descriptionWith(served: Served = {}): Description {
  const document = JSON.parse(JSON.stringify(openApiDocument(served))) as ApiDescription;
  // Strict: a keyword that JSON Schema does not know is a mistake. `not` speaks of attributes whose types stand elsewhere.
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

/** Of a service that no SkyPilot asks. */
export const leaseDescription = descriptionWith();
export const { document: apiDescription, operations, resolved, validatorOf, mistakes } = leaseDescription;
