import { z } from 'zod';
import type { FurtherSection, SectionExtension } from '../config/option-groups.ts';

/** `[skypilot]`: which admin policies the requests of SkyPilot's users must pass, and how SkyPilot reaches them. */
export const skypilotOptions = z.object({
  admin_policies: z.array(z.string()).default([]).meta({
    description:
      'The policies that every request must pass, in this order; each gets what the one before it has made of the request. ./policies/my-policy.js#MyPolicy or my-package#MyPolicy. Empty = SkyPilot is not served.',
  }),
  path: z
    .string()
    .regex(/^\/[A-Za-z0-9._~/-]*[A-Za-z0-9._~-]$/)
    .default('/skypilot/admin-policy')
    .meta({
      description: "The path of the URL in SkyPilot's admin_policy.",
      expected: 'a path such as /skypilot/admin-policy',
    }),
  tokens: z
    .array(z.string().regex(/^[\x21-\x7e]+$/))
    .default([])
    .meta({
      description:
        'What SkyPilot must send: as the password in that URL or in the .netrc of its API server, or as the query parameter token of the URL. Neither set nor tokens_file = everyone may ask who reaches a loopback address; set and empty is an error.',
      secret: true,
      guard: true,
      expected: 'a list of ASCII texts without spaces, with commas between them',
    }),
  tokens_file: z.string().min(1).optional().meta({
    description:
      'A file with further tokens for SkyPilot, one a line; a line that starts with # is a comment. Read again when it changes.',
    file: true,
    guard: true,
    expected: 'the path of a file',
  }),
  isolation: z.enum(['worker', 'none']).default('worker').meta({
    description:
      'Where policies run. worker: each in a thread of its own, which is ended at the deadline and started again, so that one that hangs or breaks is named in the log and stops nothing else. none: in the process of the service.',
  }),
  deadline: z.int().min(1).max(29).default(20).meta({
    description: 'How long all policies together may take. SkyPilot waits 30 seconds.',
    unit: 'seconds',
  }),
});

export type SkypilotOptions = z.infer<typeof skypilotOptions>;

const SECTION = 'skypilot';

/** The section as the configuration is asked for it; the policies that it names bring options along. */
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
