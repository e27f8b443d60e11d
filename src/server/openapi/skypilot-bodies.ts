import { z } from 'zod';
import { envelopeSchema } from '../../skypilot/wire.ts';

/** Those of the requests of SkyPilot and their answers, which are described only where SkyPilot is served. */
export const schemasOfSkypilot = {
  SkypilotRequest: z
    .union([
      z
        .string()
        .meta({ contentMediaType: 'application/json', description: 'The object, in JSON once more.' }),
      envelopeSchema,
    ])
    .meta({ description: 'SkyPilot sends the text; the object itself will do.' }),
  ReviewedRequest: z.string().meta({
    contentMediaType: 'application/json',
    description:
      'In JSON once more, an object of two texts in YAML: `task` and `skypilot_config`, as the policies leave them.',
  }),
  Rejection: z.string().min(1).meta({ description: 'The reason, for the user.' }),
  ReviewFailure: z
    .object({
      message: z
        .string()
        .optional()
        .meta({ description: 'For the user. Not there at a fault of the service.' }),
      request_id: z.string().meta({ description: 'Under which the log has the rest.' }),
    })
    .meta({ description: 'Of the cause nothing is told.' }),
} as const;
