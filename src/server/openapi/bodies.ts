/** JSON schemas of requests and responses, by their names in /openapi.json. */
import { z } from 'zod';
import { admissionAnswerSchema, admissionReviewSchema } from '../../kubernetes/admission/admission-review.ts';
import type { requestSchemas } from '../../lease/request-schemas.ts';
import { envelopeSchema } from '../../skypilot/request/wire.ts';

const health = z.object({ status: z.literal('ok') }).meta({ description: 'The process responds.' });

const readiness = z
  .object({
    status: z.enum(['ready', 'draining', 'configuration not valid', 'policies not known']).meta({
      description:
        '`draining`: the service is about to stop. `configuration not valid`: the configuration that was read last has mistakes, and the previous one is in force. `policies not known`: every pod is refused, since the scheduling policies of the cluster are not known yet, or too old.',
    }),
    generation: z.int().min(1).meta({
      description: 'The number of the current configuration: 1 at the start, one more with each reload.',
    }),
    problems: z.array(z.string()).meta({
      description:
        'File, line and option of each mistake, which the log and the console explain; or the reason why policies are not known.',
    }),
    policies: z
      .object({
        state: z.enum(['starting', 'current', 'behind', 'stale']).meta({
          description:
            '`starting`: not read yet. `current`: changes are followed. `behind`: the API server is unavailable, and the policies that were read last are enforced. `stale`: these are older than `cluster_stale_after`, and every pod is refused.',
        }),
        age_seconds: z.number().nonnegative().nullable().meta({
          description: 'Their maximum age in seconds: 0 = changes are followed; null = not read yet.',
        }),
        problem: z
          .string()
          .nullable()
          .meta({ description: 'Why changes are not followed; null = they are.' }),
      })
      .optional()
      .meta({ description: 'The scheduling policies of the cluster. Absent unless source = cluster.' }),
  })
  .meta({ description: 'Whether the service is ready for requests.' });

export type Health = z.infer<typeof health>;
export type Readiness = z.infer<typeof readiness>;

const requestId = z.string().meta({ description: 'The cause is in the log under this id.' });

/** Members of all errors of the API (RFC 9457). */
export const problemShape = {
  message: z.string(),
  type: z.literal('about:blank').meta({ description: 'The status is the kind of error.' }),
  title: z.string().meta({ description: 'The status, in words.' }),
  status: z.int(),
  detail: z.string().meta({ description: 'The same as `message`.' }),
};

/** Always described. */
export const bodySchemas = {
  Refusal: z
    .object({
      message: z.string().meta({ description: 'With `403`, a message for the user of the lease.' }),
    })
    .meta({ description: 'The reason.' }),
  InvalidRequest: z
    .object({
      message: z.string(),
      field: z
        .string()
        .optional()
        .meta({
          description: 'The first wrong field; empty for the whole body. Absent if the body is not JSON.',
          examples: ['lease.start_date'],
        }),
    })
    .meta({ description: 'What was expected, and what was received.' }),
  Fault: z
    .object({ request_id: requestId })
    .meta({ description: 'A fault of the service. The cause is only in the log.' }),
  Problem: z
    .object({
      ...problemShape,
      field: z
        .string()
        .optional()
        .meta({
          description: 'The parameter, header or part of the body that is wrong; empty for the whole body.',
          examples: ['valid_until'],
        }),
      request_id: requestId.optional(),
    })
    .meta({ description: 'An error of the API: problem details of RFC 9457.' }),
  Health: health,
  Readiness: readiness,
  Metrics: z.string().meta({ description: 'The text format of Prometheus.' }),
  Page: z.string().meta({ description: 'HTML.' }),
  ApiDescription: z
    .looseObject({
      openapi: z.string().regex(/^3[.]1[.]/),
      info: z.looseObject({}),
      paths: z.looseObject({}),
    })
    .meta({ description: 'An OpenAPI 3.1 document.' }),
} as const;

/** Described if SkyPilot is served. */
export const skypilotSchemas = {
  SkypilotRequest: z
    .union([
      z.string().meta({
        contentMediaType: 'application/json',
        description: 'The object, encoded as JSON a second time.',
      }),
      envelopeSchema,
    ])
    .meta({ description: 'SkyPilot sends the text; the object itself is accepted too.' }),
  ReviewedRequest: z.string().meta({
    contentMediaType: 'application/json',
    description:
      'Encoded as JSON a second time: an object with two YAML texts, `task` and `skypilot_config`, as changed by the policies.',
  }),
  Rejection: z.string().min(1).meta({ description: 'The reason, for the user.' }),
  ReviewFailure: z
    .object({
      message: z
        .string()
        .optional()
        .meta({ description: 'A message for the user. Absent for a fault of the service.' }),
      request_id: requestId,
    })
    .meta({ description: 'A policy or the service failed. The cause is only in the log.' }),
} as const;

/** Described if Kubernetes is served. */
export const kubernetesSchemas = {
  AdmissionReview: admissionReviewSchema,
  ReviewedAdmission: admissionAnswerSchema,
} as const;

export type RequestSchemaName =
  | keyof typeof requestSchemas
  | keyof Pick<typeof skypilotSchemas, 'SkypilotRequest'>
  | keyof Pick<typeof kubernetesSchemas, 'AdmissionReview'>;

export type AnswerSchemaName =
  | keyof typeof bodySchemas
  | keyof typeof skypilotSchemas
  | keyof typeof kubernetesSchemas;
