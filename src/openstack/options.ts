import { z } from 'zod';
import type { FurtherSection } from '../config/option-groups.ts';
import { type KeystoneOptions, keystoneOptions } from './keystone-options.ts';

export function isKeystoneSet({ auth_url, cloud }: Pick<KeystoneOptions, 'auth_url' | 'cloud'>): boolean {
  return auth_url !== undefined || cloud !== undefined;
}

export const keystoneSection = {
  section: 'keystone',
  schema: keystoneOptions,
  check: async (options: KeystoneOptions) => [
    ...(options.resolve_names && !isKeystoneSet(options)
      ? [{ option: 'resolve_names', message: 'there is no Keystone to ask for names: set auth_url or cloud' }]
      : []),
    // Without `[keystone]`, nothing of it is loaded.
    ...(Object.values(options).some((value) => typeof value === 'string')
      ? await (await import('./effective-options.ts')).keystoneProblems(options)
      : []),
  ],
} as const satisfies FurtherSection;

/** `[blazar]`: how the ledger follows Blazar. */
const blazarOptions = z.object({
  endpoint: z
    .url({ protocol: /^https?$/ })
    .optional()
    .meta({
      description:
        'The address of Blazar, such as https://blazar.example.org:1234/v1. Not set = the service "reservation" of the catalog.',
    }),
  reconcile_interval: z.int().min(0).max(86_400).default(60).meta({
    description:
      'Time between two reconciliations of the ledger with Blazar. 0 = never. They need [keystone], and a filter that uses the ledger.',
    unit: 'seconds',
  }),
  reconcile_grace: z.int().min(0).max(86_400).default(600).meta({
    description:
      'How long a lease may be recorded before Blazar shows it. After that, a lease that Blazar does not have is released.',
    unit: 'seconds',
  }),
});

export const blazarSection = { section: 'blazar', schema: blazarOptions } as const satisfies FurtherSection;
