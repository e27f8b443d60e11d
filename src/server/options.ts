import { z } from 'zod';

/** `[service]`: how the policy service is reached. */
export const serviceOptions = z.object({
  host: z.string().regex(/^\S+$/).default('127.0.0.1').meta({
    description: 'The address on which the policy service listens.',
    expected: 'an address or a host name',
  }),
  port: z.int().min(0).max(65535).default(8642).meta({
    description: 'The port on which it listens. 0 = any that is free.',
  }),
  deadline: z.int().min(1).max(3600).default(30).meta({
    description:
      'How long a decision may take. What has not answered by then has failed, and the lease is refused.',
    unit: 'seconds',
  }),
  tokens: z
    .array(z.string().regex(/^[\x21-\x7e]+$/))
    .default([])
    .meta({
      description:
        'What callers send as X-Auth-Token. More than one, so that a token can be replaced without a gap. Empty = everyone may ask.',
      secret: true,
      expected: 'a list of ASCII texts without spaces, with commas between them',
    }),
});

export type ServiceOptions = z.infer<typeof serviceOptions>;
