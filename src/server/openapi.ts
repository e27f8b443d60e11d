/**
 * `/openapi.json`: the HTTP interface in OpenAPI 3.1, for who generates a client. What requests are comes from the schemas
 * that judge them, what is answered from `answers.ts`.
 */
import Router from '@koa/router';
import { z } from 'zod';
import { requestSchemas } from '../lease.ts';
import { packageVersion } from '../version.ts';
import { type Answer, type AnswerName, answers, bodySchemas, headerSchemas, REQUEST_ID } from './answers.ts';
import { createExample, endExample, updateExample } from './request-examples.ts';

export const OPENAPI_PATH = '/openapi.json';

/** Needs no token, and tells of nothing but the program. */
export function openApiRoutes(): Router {
  const router = new Router();
  let text: string | undefined;
  router.get(OPENAPI_PATH, (ctx) => {
    text ??= JSON.stringify(openApiDocument());
    ctx.type = 'application/json';
    ctx.body = text;
  });
  return router;
}

interface Operation {
  readonly id: string;
  readonly tag: 'leases' | 'service';
  readonly summary: string;
  readonly description: string;
  /** Default: none is read. */
  readonly body?: { readonly schema: keyof typeof requestSchemas; readonly example: object };
  readonly answers: readonly AnswerName[];
  /** Whether a token is asked for, where the service has tokens. Default false. */
  readonly asksForToken?: boolean;
}

const TOKEN = 'X-Auth-Token';

/** Below the protocol, and of every path. */
const ALWAYS: readonly AnswerName[] = ['WrongMethod', 'ArrivedTooSlowly', 'HeadersTooLarge'];
const OF_A_BODY: readonly AnswerName[] = [
  'NoRequest',
  'NoToken',
  'TooLarge',
  'WrongType',
  'Faulty',
  'Overloaded',
];

const LEASE_OPERATIONS: Readonly<Record<string, Operation>> = {
  '/check-create': {
    id: 'checkCreate',
    tag: 'leases',
    summary: 'May this lease be created?',
    description: 'Asked before a lease is created.',
    body: { schema: 'CreateRequest', example: createExample },
    answers: ['Allowed', 'Rejected', ...OF_A_BODY],
    asksForToken: true,
  },
  '/check-update': {
    id: 'checkUpdate',
    tag: 'leases',
    summary: 'May this lease be changed?',
    description: 'Asked before a lease is changed.',
    body: { schema: 'UpdateRequest', example: updateExample },
    answers: ['Allowed', 'Rejected', ...OF_A_BODY],
    asksForToken: true,
  },
  '/on-end': {
    id: 'onEnd',
    tag: 'leases',
    summary: 'This lease has ended.',
    description: 'Told after a lease has ended or was deleted; it may come late, twice or never.',
    body: { schema: 'EndRequest', example: endExample },
    answers: ['Heard', ...OF_A_BODY],
    asksForToken: true,
  },
};

const SERVICE_OPERATIONS: Readonly<Record<string, Operation>> = {
  '/healthz': {
    id: 'getHealth',
    tag: 'service',
    summary: 'Does the process answer?',
    description: 'For who restarts it when it does not.',
    answers: ['Healthy'],
  },
  '/readyz': {
    id: 'getReadiness',
    tag: 'service',
    summary: 'Should the service be asked?',
    description:
      'For load balancers: whether the configuration is valid, and the service is not about to stop.',
    answers: ['Ready', 'NotReady'],
  },
  '/metrics': {
    id: 'getMetrics',
    tag: 'service',
    summary: 'The metrics, for Prometheus.',
    description: 'Decisions, durations, the queue, reloads, and figures of the process.',
    answers: ['Measured'],
  },
  [OPENAPI_PATH]: {
    id: 'getApiDescription',
    tag: 'service',
    summary: 'This document.',
    description: 'The same for as long as the service runs.',
    answers: ['Described'],
  },
  '/': {
    id: 'getPage',
    tag: 'service',
    summary: 'The page for people.',
    description: 'What is configured, the latest decisions, and a form that judges a request.',
    answers: ['Page', 'Login'],
    asksForToken: true,
  },
};

/** The document; the same at every call. */
export function openApiDocument() {
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
    tags: [
      { name: 'leases', description: 'What Blazar asks. Under `/` and under `/v1` it is the same.' },
      { name: 'service', description: 'How the service is.' },
    ],
    paths: paths(),
    components: {
      schemas: schemas(),
      parameters: { RequestId: requestIdParameter() },
      headers: mapped(headerSchemas, header),
      responses: mapped(answers, response),
      securitySchemes: {
        [TOKEN]: {
          type: 'apiKey',
          in: 'header',
          name: TOKEN,
          description: 'One of the tokens of the service. Not asked for where it has none.',
        },
      },
    },
  };
}

function paths(): Record<string, object> {
  return Object.fromEntries([
    ...Object.entries(LEASE_OPERATIONS).flatMap(([path, entry]) => [
      [path, { post: operation(entry) }],
      [`/v1${path}`, { post: operation({ ...entry, id: `${entry.id}V1` }) }],
    ]),
    ...Object.entries(SERVICE_OPERATIONS).map(([path, entry]) => [path, { get: operation(entry) }]),
  ]);
}

function operation({ id, tag, summary, description, body, asksForToken, answers: own }: Operation): object {
  return {
    operationId: id,
    tags: [tag],
    summary,
    description,
    security: asksForToken ? [{ [TOKEN]: [] }, {}] : [],
    parameters: [{ $ref: '#/components/parameters/RequestId' }],
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
function schemas(): Record<string, object> {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries({ ...requestSchemas, ...bodySchemas })) {
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

function mapped<Value>(values: Readonly<Record<string, Value>>, map: (value: Value) => object) {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value)]));
}
