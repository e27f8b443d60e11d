import { z } from 'zod';

/** `[service]`: how the policy service is reached. */
export const serviceOptions = z.object({
  host: z.string().min(1).default('127.0.0.1').meta({
    description: 'The address on which the policy service listens.',
    expected: 'an address or a host name',
  }),
  port: z.int().min(0).max(65535).default(8642).meta({
    description: 'The port on which it listens. 0 = any that is free.',
  }),
  tokens: z.array(z.string()).default([]).meta({
    description:
      'What callers send as X-Auth-Token. More than one, so that a token can be replaced without a gap. Empty = everyone may ask.',
    secret: true,
  }),
});

export type ServiceOptions = z.infer<typeof serviceOptions>;
