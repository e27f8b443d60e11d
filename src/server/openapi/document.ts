/**
 * `/openapi.json`: the HTTP interface in OpenAPI 3.1. `operations.ts` lists the paths, `bodies.ts` the
 * schemas and `responses.ts` the responses. Requests are described by the schemas that validate them; zod
 * writes the JSON schemas.
 */
import { isDeepStrictEqual } from 'node:util';
import Router from '@koa/router';
import { z } from 'zod';
import { packageVersion } from '../../base/version.ts';
import { requestSchemas } from '../../lease/request-schemas.ts';
import { decisionSchema } from '../api/decisions.ts';
import { entrySchema, leaseSchema } from '../api/leases.ts';
import { type ApiExample, type ApiRoute, PROBLEM_TYPE, problemOf } from '../api/route.ts';
import { API_ROUTES } from '../api/routes.ts';
import { accountSchema } from '../api/shown.ts';
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
  SERVICE_OPERATIONS,
  SKYPILOT_OPERATION,
} from './operations.ts';
import { headerSchemas, REQUEST_ID, RESPONSES, type ResponseEntry, type ResponseName } from './responses.ts';

/** Needs no token: of the configuration, the document reveals only which protocols are served. */
export function openApiRoutes(): Router {
  const router = new Router(EXACT);
  // All responses share the bytes.
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

/** Protocols besides Blazar's. Default: none. */
export interface Served {
  /** The path for SkyPilot; `undefined` = not served. */
  readonly skypilotPath?: string | undefined;
  readonly kubernetes?: boolean;
}

export function openApiDocument(served: Served = {}) {
  const operations = operationsWith(served);
  const names = new Set<string>(operations.flatMap(answersOf));
  const problems = new Set(API_ROUTES.flatMap(sharedAnswersOf).filter(hasBody));
  const authenticators = new Set(operations.flatMap(({ authenticator }) => authenticator ?? []));
  return {
    openapi: '3.1.1',
    info: {
      title: 'blazar-enforcement policy service',
      summary:
        'Usage enforcement for reservable clouds: limits on leases, SkyPilot tasks and Kubernetes pods.',
      description:
        'The external-service protocol of OpenStack Blazar. `204` means allowed; every other status means refused, and the `message` of a `403` is for the user. Unknown attributes are accepted. Unknown paths are answered with `404`, and requests that are not HTTP with an error without a body.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      version: packageVersion(),
    },
    tags: [...TAGS.filter(({ name }) => operations.some(({ tag }) => tag === name)), USERS],
    paths: paths(operations),
    components: {
      schemas: schemas(served),
      parameters: {
        RequestId: {
          name: REQUEST_ID.name,
          in: 'header',
          description: 'The id under which both sides log the request. Any other text is ignored.',
          schema: jsonSchema(REQUEST_ID.schema),
        },
      },
      headers: mapped(headerSchemas, header),
      responses: {
        ...mapped(
          Object.fromEntries(Object.entries(RESPONSES).filter(([name]) => names.has(name))),
          response,
        ),
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

const USERS = { name: 'users', description: 'For members and managers of projects, and for operators.' };

function operationsWith({ skypilotPath, kubernetes = false }: Served): Operation[] {
  return [
    ...LEASE_OPERATIONS,
    ...(skypilotPath === undefined ? [] : [{ ...SKYPILOT_OPERATION, path: skypilotPath }]),
    ...(kubernetes ? KUBERNETES_OPERATIONS : []),
    ...SERVICE_OPERATIONS,
  ];
}

function paths(operations: readonly Operation[]): Record<string, object> {
  const items: Record<string, Record<string, object>> = {};
  const all = [
    ...operations.map((one) => [one, operation(one)] as const),
    ...API_ROUTES.map((one) => [one, apiOperation(one)] as const),
  ];
  for (const [{ path, method }, described] of all) {
    items[path] = { ...items[path], [method.toLowerCase()]: described };
  }
  return items;
}

const REQUEST_ID_PARAMETER = { $ref: '#/components/parameters/RequestId' };

function operation(one: Operation): object {
  const { id, tag, summary, description, parameters = [], body, authenticator } = one;
  return {
    operationId: id,
    tags: [tag],
    summary,
    description,
    security: security(authenticator),
    parameters: [REQUEST_ID_PARAMETER, ...parameters],
    ...(body && {
      requestBody: {
        required: true,
        description: 'UTF-8, plain or compressed with gzip, deflate or br.',
        content: { 'application/json': { schema: schemaNamed(body.schema), example: body.example } },
      },
    }),
    responses: responsesNamed(answersOf(one), (name) => name),
  };
}

function answersOf({ responses, body }: Operation): ResponseName[] {
  return [...responses, ...(body === undefined ? [] : ['TooManyTokens' as const, ...WITH_A_BODY]), ...ALWAYS];
}

/** One of the schemes is sufficient; none is needed if none is configured. */
function security(authenticator: ProtocolName | undefined): object[] {
  return authenticator === undefined
    ? []
    : [...Object.keys(securitySchemesOf(authenticator)).map((scheme) => ({ [scheme]: [] })), {}];
}

function responsesNamed(
  names: readonly ResponseName[],
  shownAs: (name: ResponseName) => string,
): Record<string, object> {
  return Object.fromEntries(
    names.map((name) => [RESPONSES[name].status, { $ref: `#/components/responses/${shownAs(name)}` }]),
  );
}

/** Errors that Blazar's protocol has too, with another body, get another name. */
function problemName(name: ResponseName): string {
  const { body } = entryOf(name);
  return body === undefined || body === 'Problem' ? name : `Api${name}`;
}

/** Responses of the socket have no body. */
const hasBody = (name: ResponseName) => entryOf(name).body !== undefined;
const entryOf = (name: ResponseName): ResponseEntry => RESPONSES[name];

function problemResponse(name: ResponseName): object {
  const { status, examples = {}, ...entry } = entryOf(name);
  return response({
    ...entry,
    status,
    body: 'Problem',
    examples: mapped(examples, (example) => problemOf(status, example as object)),
  });
}

function response(entry: ResponseEntry): object {
  const { description, headers, body, type = 'application/json', examples } = entry;
  return {
    description,
    headers: Object.fromEntries(headers.map((name) => [name, { $ref: `#/components/headers/${name}` }])),
    ...(body && {
      content: {
        [type]: {
          schema: schemaNamed(body),
          ...(examples && { examples: mapped(examples, (value) => ({ value })) }),
        },
        ...(body === 'Problem' && asked(schemaNamed(body))),
      },
    }),
  };
}

/** The content if a client requests the type of problems. */
const asked = (schema: object) => ({ [PROBLEM_TYPE]: { schema } });

function header(schema: z.ZodType): object {
  const { description, required, schema: rest } = described(schema);
  return { description, required, schema: rest };
}

/** A schema is optional if it accepts `undefined`. */
function described(schema: z.ZodType) {
  const { description, ...rest } = jsonSchema(schema);
  return { required: !schema.safeParse(undefined).success, description, schema: rest };
}

const schemaPath = (name: string) => `#/components/schemas/${name}`;
const schemaNamed = (name: string) => ({ $ref: schemaPath(name) });

function schemas({ skypilotPath, kubernetes = false }: Served): Record<string, object> {
  const registry = z.registry<{ id: string }>();
  const all = {
    ...requestSchemas,
    ...bodySchemas,
    ...apiSchemas(),
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

/** Objects may have further attributes. zod sees dates as code: their `meta` describes them. */
const CONVERSION = {
  io: 'input',
  unrepresentable: 'any',
  override: ({ jsonSchema: json }) => {
    if (json.type === 'object') {
      json.additionalProperties = true;
    } else {
      // Beside a reference, it would refuse what the other schema names.
      delete json.additionalProperties;
    }
  },
} as const satisfies z.core.ToJSONSchemaParams;

/** Schemas within the document have no URL of their own. */
function withoutAddress({ $schema, $id, ...schema }: z.core.JSONSchema.BaseSchema) {
  return schema;
}

function mapped<Value>(values: Readonly<Record<string, Value>>, map: (value: Value, name: string) => object) {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value, name)]));
}

/** Responses of every route besides its own. */
const API_ALWAYS: readonly ResponseName[] = [
  'NotAsked',
  'NoPerson',
  'TooManyTokens',
  'NotAllowed',
  'NotAnswered',
  'NotNow',
];
const WITH_A_BODY: readonly ResponseName[] = ['TooLarge', 'WrongType'];

/** The shared responses of a route, except for statuses that it describes itself. */
function sharedAnswersOf({ body, answers }: ApiRoute): ResponseName[] {
  return [...API_ALWAYS, ...(body === undefined ? [] : WITH_A_BODY), ...ALWAYS].filter(
    (name) => !answers.some(({ status }) => status === RESPONSES[name].status),
  );
}

/** Parts of several bodies: described once. */
const SHARED = {
  Account: accountSchema,
  ListedLease: leaseSchema,
  LedgerEntry: entrySchema,
  Decision: decisionSchema,
};

function apiSchemas(): Record<string, z.ZodType> {
  const named = API_ROUTES.flatMap(({ body, answers }) => [
    ...(body === undefined ? [] : [[body.name, body.schema] as const]),
    ...answers.flatMap(({ name, schema }) =>
      name === undefined || schema === undefined ? [] : [[name, schema] as const],
    ),
  ]);
  return { ...SHARED, ...Object.fromEntries(named) };
}

const TEXT = { type: 'string' };

function apiOperation(route: ApiRoute): object {
  const { id, path, summary, description, action, query, headers = {}, body, answers } = route;
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { ...TEXT, maxLength: 255 },
  }));
  const inQuery =
    query instanceof z.ZodObject
      ? mapped(query.shape as Record<string, z.ZodType>, (schema, name) => ({
          name,
          in: 'query',
          ...described(schema),
        }))
      : {};
  const inHeaders = mapped(headers, (one, name) => ({ name, in: 'header', ...textHeader(one) }));
  return {
    operationId: id,
    tags: [USERS.name],
    summary,
    description: `${description}\n\nFor: ${ACTIONS[action].join(', ')}.`,
    parameters: [REQUEST_ID_PARAMETER, ...inPath, ...Object.values(inQuery), ...Object.values(inHeaders)],
    ...(body && {
      requestBody: {
        required: true,
        content: {
          'application/json': { schema: schemaNamed(body.name), example: body.example },
          ...mapped(body.texts ?? {}, (example) => ({ schema: TEXT, example })),
        },
      },
    }),
    responses: {
      ...Object.fromEntries(answers.map((answer) => [answer.status, apiAnswer(answer)])),
      ...responsesNamed(sharedAnswersOf(route), problemName),
    },
    security: security('blazar'),
  };
}

const textHeader = ({ description }: { readonly description: string }) => ({
  required: true,
  description,
  schema: TEXT,
});

function apiAnswer({ status, description, headers = {}, name, schema, ...more }: ApiExample): object {
  const { type = 'application/json', otherTypes = {} } = more;
  const shown = name === undefined ? schema && jsonSchema(schema) : schemaNamed(name);
  return {
    description,
    headers: {
      [REQUEST_ID.name]: { $ref: `#/components/headers/${REQUEST_ID.name}` },
      ...mapped(headers, textHeader),
    },
    ...(schema && {
      content: {
        [type]: { schema: shown },
        ...(status >= 400 && asked(shown ?? {})),
        ...mapped(otherTypes, (other) => ({ schema: jsonSchema(other) })),
      },
    }),
  };
}
