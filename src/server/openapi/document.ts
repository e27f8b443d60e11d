/**
 * `/openapi.json`: the HTTP interface in OpenAPI 3.1, for who generates a client. What requests are comes from the schemas
 * that judge them, what is answered from `answers.ts`, and which of it where from `operations.ts`.
 */
import { isDeepStrictEqual } from 'node:util';
import Router from '@koa/router';
import { z } from 'zod';
import { requestSchemas } from '../../lease/request-schemas.ts';
import { packageVersion } from '../../version.ts';
import { type DoorName, securitySchemesOf } from '../doors.ts';
import { EXACT } from '../own-paths.ts';
import { stateOf } from '../request-state.ts';
import { schemasOfKubernetes } from './kubernetes-bodies.ts';
import {
  ALWAYS,
  KUBERNETES_OPERATIONS,
  LEASE_OPERATIONS,
  OPENAPI_PATH,
  type Operation,
  PARAMETERS,
  SERVICE_OPERATIONS,
  SKYPILOT_OPERATION,
} from './operations.ts';
import {
  type Answer,
  type AnswerName,
  answers,
  bodySchemas,
  headerSchemas,
  REQUEST_ID,
} from './responses.ts';
import { schemasOfSkypilot } from './skypilot-bodies.ts';

/** Needs no token, and tells of nothing but the program, and the path at which SkyPilot is served. */
export function openApiRoutes(): Router {
  const router = new Router(EXACT);
  // As bytes, which all answers share.
  let made: { readonly served: Served; readonly text: Buffer } | undefined;
  router.get(OPENAPI_PATH, (ctx) => {
    const { skypilot, kubernetes } = stateOf(ctx).generation;
    const served = {
      skypilotPath: skypilot.policies.isEmpty ? undefined : skypilot.options.path,
      kubernetes: kubernetes !== undefined,
    };
    if (made === undefined || !isDeepStrictEqual(made.served, served)) {
      made = { served, text: Buffer.from(JSON.stringify(openApiDocument(served))) };
    }
    ctx.type = 'application/json';
    ctx.body = made.text;
  });
  return router;
}

/** What is served besides Blazar. Default: nothing. */
export interface Served {
  /** Where SkyPilot is. */
  readonly skypilotPath?: string | undefined;
  readonly kubernetes?: boolean;
}

/** The document; the same at every call. */
export function openApiDocument(served: Served = {}) {
  const operations = operationsWith(served);
  const names = new Set(operations.flatMap(({ entry }) => [...entry.answers, ...ALWAYS]));
  const doors = new Set(operations.flatMap(({ entry }) => entry.door ?? []));
  return {
    openapi: '3.1.1',
    info: {
      title: 'blazar-enforcement policy service',
      summary: 'Usage enforcement for reservable clouds: who may lease what, for how long, how much.',
      description:
        'Speaks the external-service protocol of OpenStack Blazar. `204` is yes; anything else is no, and the `message` of a `403` is for the user. Attributes that are not known here are taken as they are. A path that is not listed is answered `404`, and what is no HTTP an error without a body.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      version: packageVersion(),
    },
    tags: TAGS.filter(({ name }) => operations.some(({ entry }) => entry.tag === name)),
    paths: Object.fromEntries(
      operations.map(({ path, method, entry }) => [path, { [method]: operation(entry) }]),
    ),
    components: {
      schemas: schemas(served),
      parameters: { RequestId: requestIdParameter() },
      headers: mapped(headerSchemas, header),
      responses: mapped(only(answers, names), response),
      securitySchemes: Object.assign({}, ...[...doors].map(securitySchemesOf)),
    },
  };
}

const TAGS = [
  { name: 'leases', description: 'What Blazar asks. Under `/` and under `/v1` it is the same.' },
  { name: 'skypilot', description: 'What SkyPilot asks.' },
  { name: 'kubernetes', description: 'What the API server of Kubernetes asks.' },
  { name: 'service', description: 'How the service is.' },
] as const satisfies readonly { name: Operation['tag']; description: string }[];

interface PathOperation {
  readonly path: string;
  readonly method: 'get' | 'post';
  readonly entry: Operation;
}

function operationsWith({ skypilotPath, kubernetes = false }: Served): PathOperation[] {
  return [
    ...Object.entries(LEASE_OPERATIONS).flatMap(([path, entry]) => [
      { path, method: 'post' as const, entry },
      { path: `/v1${path}`, method: 'post' as const, entry: { ...entry, id: `${entry.id}V1` } },
    ]),
    ...(skypilotPath === undefined
      ? []
      : [{ path: skypilotPath, method: 'post' as const, entry: SKYPILOT_OPERATION }]),
    ...Object.entries(kubernetes ? KUBERNETES_OPERATIONS : {}).map(([path, entry]) => ({
      path,
      method: 'post' as const,
      entry,
    })),
    ...Object.entries(SERVICE_OPERATIONS).map(([path, entry]) => ({ path, method: 'get' as const, entry })),
  ];
}

function operation({
  id,
  tag,
  summary,
  description,
  parameters = [],
  body,
  door,
  answers: own,
}: Operation): object {
  return {
    operationId: id,
    tags: [tag],
    summary,
    description,
    security: security(door),
    parameters: [
      { $ref: '#/components/parameters/RequestId' },
      ...parameters.map((parameter) => PARAMETERS[parameter]),
    ],
    ...(body && {
      requestBody: {
        required: true,
        description: 'In UTF-8, as it is or compressed by gzip, deflate or br.',
        content: {
          'application/json': { schema: { $ref: schemaPath(body.schema) }, example: body.example },
        },
      },
    }),
    responses: responses([...own, ...ALWAYS]),
  };
}

/** One of them is enough; none, where none is configured. */
function security(door: DoorName | undefined): object[] {
  return door === undefined
    ? []
    : [...Object.keys(securitySchemesOf(door)).map((scheme) => ({ [scheme]: [] })), {}];
}

function responses(names: readonly AnswerName[]): Record<string, object> {
  return Object.fromEntries(
    names.map((name) => [answers[name].status, { $ref: `#/components/responses/${name}` }]),
  );
}

function response({ description, headers, body, type = 'application/json', examples }: Answer): object {
  return {
    description,
    headers: Object.fromEntries(headers.map((name) => [name, { $ref: `#/components/headers/${name}` }])),
    ...(body && {
      content: {
        [type]: {
          schema: { $ref: schemaPath(body) },
          ...(examples && { examples: mapped(examples, (value) => ({ value })) }),
        },
      },
    }),
  };
}

function header(schema: z.ZodType): object {
  const { description, ...rest } = jsonSchema(schema);
  return { description, required: true, schema: rest };
}

function requestIdParameter(): object {
  const { name, schema } = REQUEST_ID;
  return {
    name,
    in: 'header',
    description: 'The id under which both sides log the request. Anything that is no such id is not read.',
    schema: jsonSchema(schema),
  };
}

const schemaPath = (name: string) => `#/components/schemas/${name}`;

/** Those of requests and answers, referring to each other. */
function schemas({ skypilotPath, kubernetes = false }: Served): Record<string, object> {
  const registry = z.registry<{ id: string }>();
  const all = {
    ...requestSchemas,
    ...bodySchemas,
    ...(skypilotPath !== undefined && schemasOfSkypilot),
    ...(kubernetes && schemasOfKubernetes),
  };
  for (const [id, schema] of Object.entries(all)) {
    registry.add(schema, { id });
  }
  return mapped(z.toJSONSchema(registry, { ...CONVERSION, uri: schemaPath }).schemas, withoutAddress);
}

function jsonSchema(schema: z.ZodType) {
  return withoutAddress(z.toJSONSchema(schema, CONVERSION));
}

/** What comes and goes may have further attributes. Dates are code to zod: their `meta` says what they are in JSON. */
const CONVERSION = {
  io: 'input',
  unrepresentable: 'any',
  override: ({ jsonSchema: json }) => {
    if (json.type === 'object') {
      json.additionalProperties = true;
    }
  },
} as const satisfies z.core.ToJSONSchemaParams;

/** What is part of a document has its address from there. */
function withoutAddress({ $schema, $id, ...schema }: z.core.JSONSchema.BaseSchema) {
  return schema;
}

function only<Value>(values: Readonly<Record<string, Value>>, names: ReadonlySet<string | undefined>) {
  return Object.fromEntries(Object.entries(values).filter(([name]) => names.has(name)));
}

function mapped<Value>(values: Readonly<Record<string, Value>>, map: (value: Value) => object) {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value)]));
}
