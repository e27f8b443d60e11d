/**
 * `/openapi.json`: the HTTP interface in OpenAPI 3.1. `operations.ts` lists the paths, `bodies.ts` the schemas and `responses.ts` the
 * answers. Requests are described by the schemas that check them. zod writes the JSON schemas.
 */
import { isDeepStrictEqual } from 'node:util';
import Router from '@koa/router';
import { z } from 'zod';
import { packageVersion } from '../../base/version.ts';
import { requestSchemas } from '../../lease/request-schemas.ts';
import { PROBLEM_TYPE, problemOf } from '../api/problem.ts';
import type { ApiExample, ApiRoute } from '../api/route.ts';
import { API_ROUTES } from '../api/routes.ts';
import { type ProtocolName, securitySchemesOf } from '../authentication/protocols.ts';
import { EXACT } from '../own-paths.ts';
import { stateOf } from '../request-state.ts';
import { ACTIONS } from '../users/caller.ts';
import { bodySchemas, kubernetesSchemas, skypilotSchemas } from './bodies.ts';
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
import { headerSchemas, REQUEST_ID, RESPONSES, type ResponseEntry, type ResponseName } from './responses.ts';

/** Needs no token: the document shows the program, and of the configuration only which protocols are served. */
export function openApiRoutes(): Router {
  const router = new Router(EXACT);
  // The bytes are shared by all answers.
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

/** What is served apart from Blazar's protocol. Default: nothing. */
export interface Served {
  /** The path for SkyPilot; `undefined` = not served. */
  readonly skypilotPath?: string | undefined;
  readonly kubernetes?: boolean;
}

export function openApiDocument(served: Served = {}) {
  const operations = operationsWith(served);
  const names = new Set(operations.flatMap(({ entry }) => [...entry.responses, ...ALWAYS]));
  const problems = new Set(API_ROUTES.flatMap(sharedAnswersOf).filter(isProblem));
  const authenticators = new Set(operations.flatMap(({ entry }) => entry.authenticator ?? []));
  return {
    openapi: '3.1.1',
    info: {
      title: 'blazar-enforcement policy service',
      summary: 'Usage enforcement for reservable clouds: who may lease what, for how long, how much.',
      description:
        'The external-service protocol of OpenStack Blazar. `204` means allowed; every other status means refused, and the `message` of a `403` is for the user. Unknown attributes are accepted. Other paths are answered with `404`, and requests that are not HTTP with an error without a body.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      version: packageVersion(),
    },
    tags: [...TAGS.filter(({ name }) => operations.some(({ entry }) => entry.tag === name)), PEOPLE],
    paths: pathItems([
      ...operations.map(({ path, method, entry }) => ({ path, method, described: operation(entry) })),
      ...API_ROUTES.map((route) => ({
        path: route.path,
        method: route.method.toLowerCase(),
        described: {
          ...apiOperation(route, apiAnswers(route), { jsonSchema, schemaPath }),
          security: security('blazar'),
        },
      })),
    ]),
    components: {
      schemas: schemas(served),
      parameters: { RequestId: requestIdParameter() },
      headers: mapped(headerSchemas, header),
      responses: {
        ...mapped(only(RESPONSES, names), response),
        ...Object.fromEntries([...problems].map((name) => [problemName(name), problemResponse(name)])),
      },
      securitySchemes: Object.assign({}, ...[...authenticators].map(securitySchemesOf)),
    },
  };
}

const TAGS = [
  { name: 'leases', description: 'For Blazar. Each path exists under `/` and under `/v1`.' },
  { name: 'skypilot', description: 'For SkyPilot.' },
  { name: 'kubernetes', description: 'For API servers of Kubernetes.' },
  { name: 'service', description: 'For operators.' },
] as const satisfies readonly { name: Operation['tag']; description: string }[];

const PEOPLE = { name: 'people', description: 'For members and managers of projects, and for operators.' };

function apiAnswers(route: ApiRoute) {
  return responsesNamed(sharedAnswersOf(route), (name) => (isProblem(name) ? problemName(name) : name));
}

/** A path may have several methods. */
function pathItems(
  all: readonly { readonly path: string; readonly method: string; readonly described: object }[],
): Record<string, object> {
  const items: Record<string, Record<string, object>> = {};
  for (const { path, method, described } of all) {
    items[path] = { ...items[path], [method]: described };
  }
  return items;
}

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
  authenticator,
  responses: own,
}: Operation): object {
  return {
    operationId: id,
    tags: [tag],
    summary,
    description,
    security: security(authenticator),
    parameters: [
      { $ref: '#/components/parameters/RequestId' },
      ...parameters.map((parameter) => PARAMETERS[parameter]),
    ],
    ...(body && {
      requestBody: {
        required: true,
        description: 'UTF-8, plain or compressed with gzip, deflate or br.',
        content: {
          'application/json': { schema: { $ref: schemaPath(body.schema) }, example: body.example },
        },
      },
    }),
    responses: responsesNamed([...own, ...ALWAYS]),
  };
}

/** One of the schemes is enough; none is needed where none is configured. */
function security(authenticator: ProtocolName | undefined): object[] {
  return authenticator === undefined
    ? []
    : [...Object.keys(securitySchemesOf(authenticator)).map((scheme) => ({ [scheme]: [] })), {}];
}

function responsesNamed(
  names: readonly ResponseName[],
  shownAs: (name: ResponseName) => string = (name) => name,
): Record<string, object> {
  return Object.fromEntries(
    names.map((name) => [RESPONSES[name].status, { $ref: `#/components/responses/${shownAs(name)}` }]),
  );
}

/** Of errors that Blazar's protocol has too, with a body of their own. */
const problemName = (name: ResponseName) => (isOfApi(name) ? name : `Api${name}`);
const isOfApi = (name: ResponseName) => entryOf(name).body === 'Problem';
/** What the socket answers has no body. */
const isProblem = (name: ResponseName) => entryOf(name).body !== undefined;
const entryOf = (name: ResponseName): ResponseEntry => RESPONSES[name];

function problemResponse(name: ResponseName): object {
  const { status, examples = {}, ...entry } = entryOf(name);
  return response({
    ...{ ...entry, status, body: 'Problem' },
    examples: mapped(examples, (example) => problemOf(status, example as object)),
  });
}

function response({
  description,
  headers,
  body,
  type = 'application/json',
  examples,
}: ResponseEntry): object {
  return {
    description,
    headers: Object.fromEntries(headers.map((name) => [name, { $ref: `#/components/headers/${name}` }])),
    ...(body && {
      content: {
        [type]: {
          schema: { $ref: schemaPath(body) },
          ...(examples && { examples: mapped(examples, (value) => ({ value })) }),
        },
        ...(body === 'Problem' && asked({ $ref: schemaPath(body) })),
      },
    }),
  };
}

/** Where a client names the type of problems, it is that. */
const asked = (schema: object) => ({ [PROBLEM_TYPE]: { schema } });

function header(schema: z.ZodType): object {
  const { description, ...rest } = jsonSchema(schema);
  return { description, required: !schema.safeParse(undefined).success, schema: rest };
}

function requestIdParameter(): object {
  const { name, schema } = REQUEST_ID;
  return {
    name,
    in: 'header',
    description: 'The id under which both sides log the request. Any other text is ignored.',
    schema: jsonSchema(schema),
  };
}

const schemaPath = (name: string) => `#/components/schemas/${name}`;

/** The schemas of requests and answers, with references to each other. */
function schemas({ skypilotPath, kubernetes = false }: Served): Record<string, object> {
  const registry = z.registry<{ id: string }>();
  const all = {
    ...requestSchemas,
    ...bodySchemas,
    ...apiSchemas(API_ROUTES),
    ...(skypilotPath !== undefined && skypilotSchemas),
    ...(kubernetes && kubernetesSchemas),
  };
  for (const [id, schema] of Object.entries(all)) {
    registry.add(schema, { id });
  }
  return mapped(z.toJSONSchema(registry, { ...CONVERSION, uri: schemaPath }).schemas, withoutAddress);
}

function jsonSchema(schema: z.ZodType) {
  return withoutAddress(z.toJSONSchema(schema, CONVERSION));
}

/** Objects may have further attributes. Dates are code to zod: their `meta` describes them. */
const CONVERSION = {
  io: 'input',
  unrepresentable: 'any',
  override: ({ jsonSchema: json }) => {
    if (json.type === 'object') {
      json.additionalProperties = true;
    }
  },
} as const satisfies z.core.ToJSONSchemaParams;

/** Within the document, a schema has no address of its own. */
function withoutAddress({ $schema, $id, ...schema }: z.core.JSONSchema.BaseSchema) {
  return schema;
}

function only<Value>(values: Readonly<Record<string, Value>>, names: ReadonlySet<string | undefined>) {
  return Object.fromEntries(Object.entries(values).filter(([name]) => names.has(name)));
}

function mapped<Value>(values: Readonly<Record<string, Value>>, map: (value: Value) => object) {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value)]));
}

/** What every route may answer besides its own. */
const API_ALWAYS: readonly ResponseName[] = [
  'NotAsked',
  'NoPerson',
  'TooManyTokens',
  'NotAllowed',
  'NotAnswered',
  'NotNow',
];
const WITH_A_BODY: readonly ResponseName[] = ['TooLarge', 'WrongType'];

/** The shared answers of a route: none whose status it describes itself. */
function sharedAnswersOf({ body, answers }: ApiRoute): ResponseName[] {
  return [...API_ALWAYS, ...(body === undefined ? [] : WITH_A_BODY), ...ALWAYS].filter(
    (name) => !answers.some(({ status }) => status === RESPONSES[name].status),
  );
}

/** By name, for `components.schemas`. */
function apiSchemas(routes: readonly ApiRoute[]): Record<string, z.ZodType> {
  const named = routes.flatMap(({ body, answers }) => [
    ...(body === undefined ? [] : [[body.name, body.schema] as const]),
    ...answers.flatMap(({ name, schema }) =>
      name === undefined || schema === undefined ? [] : [[name, schema] as const],
    ),
  ]);
  return Object.fromEntries(named);
}

interface Convert {
  readonly jsonSchema: (schema: z.ZodType) => object;
  readonly schemaPath: (name: string) => string;
}

function apiOperation(route: ApiRoute, responses: object, { jsonSchema, schemaPath }: Convert): object {
  const { id, summary, description, action, body, answers } = route;
  const schemaOf = ({ name, schema }: ApiExample) =>
    name === undefined ? schema && jsonSchema(schema) : { $ref: schemaPath(name) };
  return {
    operationId: id,
    tags: ['people'],
    summary,
    description: `${description}\n\nFor: ${ACTIONS[action].join(', ')}.`,
    parameters: [
      { $ref: '#/components/parameters/RequestId' },
      ...[...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
        name,
        in: 'path',
        required: true,
        schema: { type: 'string', maxLength: 255 },
      })),
      ...queryParameters(route, jsonSchema),
      ...Object.entries(route.headers ?? {}).map(([name, { description: what }]) => ({
        name,
        in: 'header',
        required: true,
        description: what,
        schema: { type: 'string' },
      })),
    ],
    ...(body && {
      requestBody: {
        required: true,
        content: {
          'application/json': { schema: { $ref: schemaPath(body.name) }, example: body.example },
          ...Object.fromEntries(
            Object.entries(body.texts ?? {}).map(([type, example]) => [
              type,
              { schema: { type: 'string' }, example },
            ]),
          ),
        },
      },
    }),
    responses: {
      ...Object.fromEntries(
        answers.map((answer) => [
          answer.status,
          {
            description: answer.description,
            headers: {
              [REQUEST_ID.name]: { $ref: `#/components/headers/${REQUEST_ID.name}` },
              ...Object.fromEntries(
                Object.entries(answer.headers ?? {}).map(([name, { description: what }]) => [
                  name,
                  { description: what, required: true, schema: { type: 'string' } },
                ]),
              ),
            },
            ...(answer.schema && {
              content: {
                [answer.type ?? 'application/json']: { schema: schemaOf(answer) },
                ...(answer.status >= 400 && asked(schemaOf(answer) ?? {})),
                ...Object.fromEntries(
                  Object.entries(answer.otherTypes ?? {}).map(([type, schema]) => [
                    type,
                    { schema: jsonSchema(schema) },
                  ]),
                ),
              },
            }),
          },
        ]),
      ),
      ...responses,
    },
  };
}

function queryParameters({ query }: ApiRoute, jsonSchema: Convert['jsonSchema']): object[] {
  if (!(query instanceof z.ZodObject)) {
    return [];
  }
  return Object.entries(query.shape).map(([name, schema]) => {
    const { description, ...rest } = jsonSchema(schema as z.ZodType) as { description?: string };
    return {
      name,
      in: 'query',
      required: !(schema as z.ZodType).safeParse(undefined).success,
      description,
      schema: rest,
    };
  });
}
