/** The routes of the API in OpenAPI: each describes itself. */
import { z } from 'zod';
import type { ApiExample, ApiRoute } from '../api/route.ts';
import { ACTIONS } from '../users/access.ts';
import { REQUEST_ID, type ResponseName } from './responses.ts';

/** What every route may answer besides its own. */
export const API_ALWAYS: readonly ResponseName[] = [
  'NotAsked',
  'NoPerson',
  'TooManyTokens',
  'NotAllowed',
  'NotAnswered',
  'NotNow',
];
const WITH_A_BODY: readonly ResponseName[] = ['TooLarge', 'WrongType'];

/** The shared answers of a route: none whose status it describes itself. */
export function sharedAnswersOf(
  { body, answers }: ApiRoute,
  names: Record<ResponseName, { status: number }>,
) {
  return [...API_ALWAYS, ...(body === undefined ? [] : WITH_A_BODY)].filter(
    (name) => !answers.some(({ status }) => status === names[name].status),
  );
}

/** By name, for `components.schemas`. */
export function apiSchemas(routes: readonly ApiRoute[]): Record<string, z.ZodType> {
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

export function apiOperation(
  route: ApiRoute,
  responses: object,
  { jsonSchema, schemaPath }: Convert,
): object {
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
