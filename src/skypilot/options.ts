import { z } from 'zod';
import type { FurtherSection, SectionExtension } from '../config/option-groups.ts';

/** `[skypilot]`: the admin policies for requests of SkyPilot users, and how SkyPilot connects. */
export const skypilotOptions = z.object({
  admin_policies: z.array(z.string()).default([]).meta({
    description:
      'The policies for every request, in this order; each gets the request as the previous one changed it. Format: ./policies/my-policy.js#MyPolicy or my-package#MyPolicy. Empty = the SkyPilot endpoint is off.',
  }),
  path: z
    .string()
    .regex(/^\/[A-Za-z0-9._~/-]*[A-Za-z0-9._~-]$/)
    .default('/skypilot/admin-policy')
    .meta({
      description: "The URL path in SkyPilot's admin_policy.",
      expected: 'a path such as /skypilot/admin-policy',
    }),
  tokens: z
    .array(z.string().regex(/^[\x21-\x7e]+$/))
    .default([])
    .meta({
      description:
        'Tokens that SkyPilot must send: as the password in that URL or in the .netrc of its API server, or as the query parameter token of the URL. If tokens and tokens_file are both unset, every client that can reach a loopback address is accepted; an empty list is an error.',
      secret: true,
      guard: true,
      expected: 'a comma-separated list of ASCII strings without spaces',
    }),
  tokens_file: z.string().min(1).optional().meta({
    description:
      'A file with more tokens for SkyPilot, one per line; lines that start with # are comments. Read again when it changes.',
    file: true,
    guard: true,
    expected: 'the path of a file',
  }),
  isolation: z.enum(['worker', 'none']).default('worker').meta({
    description:
      'Where policies run. worker: each in its own thread, which is stopped at the deadline and restarted, so that a policy that hangs or crashes is named in the log and stops nothing else. none: in the process of the service.',
  }),
  deadline: z.int().min(1).max(29).default(20).meta({
    description: 'Time limit for all policies together. SkyPilot waits 30 seconds.',
    unit: 'seconds',
  }),
});

export type SkypilotOptions = z.infer<typeof skypilotOptions>;

const SECTION = 'skypilot';

/** The section of the configuration, including the options of the named policies. */
export const skypilotSection = {
  section: SECTION,
  schema: skypilotOptions,
  extend: async ({ admin_policies }: SkypilotOptions): Promise<SectionExtension> => {
    if (admin_policies.length === 0) {
      return { schemas: [], problems: [] };
    }
    const { loadPolicies } = await import('./policy-loader.ts');
    const { policies, problems } = await loadPolicies(
      admin_policies,
      SECTION,
      Object.keys(skypilotOptions.shape),
    );
    return {
      schemas: policies.map(({ policyClass }) => policyClass.options),
      problems: problems.map((message) => ({ option: 'admin_policies', message })),
    };
  },
} as const satisfies FurtherSection;
