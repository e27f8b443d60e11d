/** The JSON schemas of what is sent and answered, by their names in /openapi.json. */
import { z } from 'zod';
import { admissionAnswerSchema, admissionReviewSchema } from '../../kubernetes/admission/admission-review.ts';
import type { requestSchemas } from '../../lease/request-schemas.ts';
import { envelopeSchema } from '../../skypilot/request/wire.ts';

const health = z.object({ status: z.literal('ok') }).meta({ description: 'The process answers.' });

const readiness = z
  .object({
    status: z.enum(['ready', 'draining', 'configuration not valid', 'policies not known']).meta({
      description:
        '`draining`: the service is about to stop. `configuration not valid`: the configuration that was read last has mistakes, and the one before it decides. `policies not known`: every pod is refused, since the scheduling policies of the cluster are not known yet, or too old.',
    }),
    generation: z
      .int()
      .min(1)
      .meta({ description: 'The number of the configuration that decides: 1 since the start.' }),
    problems: z.array(z.string()).meta({
      description:
        'The file, line and option of each mistake, which the log and the console explain; why policies are not known.',
    }),
    policies: z
      .object({
        state: z.enum(['starting', 'current', 'behind', 'stale']).meta({
          description:
            '`starting`: not read yet. `current`: changes are followed. `behind`: the API server is away, and what was read last is enforced. `stale`: that is older than `cluster_stale_after`, and every pod is refused.',
        }),
        age_seconds: z.number().nonnegative().nullable().meta({
          description: 'How old they may be: 0 = they are followed; null = not read yet.',
        }),
        problem: z.string().nullable().meta({ description: 'Why they are not followed; null = they are.' }),
      })
      .optional()
      .meta({ description: 'The scheduling policies of the cluster. Absent unless source = cluster.' }),
  })
  .meta({ description: 'Whether to send requests to this service.' });

export type Health = z.infer<typeof health>;
export type Readiness = z.infer<typeof readiness>;

const requestId = z.string().meta({ description: 'The log has the cause under this id.' });

/** Of all errors of the API, as RFC 9457 has them. */
export const problemShape = {
  message: z.string(),
  type: z.literal('about:blank').meta({ description: 'The status says what kind of error it is.' }),
  title: z.string().meta({ description: 'The status, in words.' }),
  status: z.int(),
  detail: z.string().meta({ description: 'The same as `message`.' }),
};

/** Described always. */
export const bodySchemas = {
  Refusal: z
    .object({
      message: z
        .string()
        .meta({ description: 'The message of a `403` is for the user who wants the lease.' }),
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
    .meta({ description: 'What was expected, and what came.' }),
  Fault: z
    .object({ request_id: requestId })
    .meta({ description: 'A fault of the service. Only the log has the cause.' }),
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
  Page: z.string().meta({ description: 'HTML, without scripts.' }),
  ApiDescription: z
    .looseObject({
      openapi: z.string().regex(/^3[.]1[.]/),
      info: z.looseObject({}),
      paths: z.looseObject({}),
    })
    .meta({ description: 'An OpenAPI 3.1 document.' }),
} as const;

/** Described where SkyPilot is served. */
export const skypilotSchemas = {
  SkypilotRequest: z
    .union([
      z.string().meta({
        contentMediaType: 'application/json',
        description: 'The object, encoded as JSON once more.',
      }),
      envelopeSchema,
    ])
    .meta({ description: 'SkyPilot sends the text; the object itself is accepted too.' }),
  ReviewedRequest: z.string().meta({
    contentMediaType: 'application/json',
    description:
      'Encoded as JSON once more: an object with two YAML texts, `task` and `skypilot_config`, as the policies leave them.',
  }),
  Rejection: z.string().min(1).meta({ description: 'The reason, for the user.' }),
  ReviewFailure: z
    .object({
      message: z
        .string()
        .optional()
        .meta({ description: 'For the user. Absent for a fault of the service.' }),
      request_id: requestId,
    })
    .meta({ description: 'A policy or the service failed. Only the log has the cause.' }),
} as const;

/** Described where Kubernetes is served. */
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
