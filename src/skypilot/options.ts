import { z } from 'zod';
import { MIN_TOKEN_LENGTH, TOKEN_FORM } from '../config/secret.ts';

/** An option with the address of SkyPilot's API server. */
export const apiServerUrl = (description: string) =>
  z
    .url({ protocol: /^https?$/ })
    .regex(/^https?:\/\/[^/?#@\s]+(?:\/[^?#\s]*)?$/i)
    .optional()
    .meta({
      description,
      url: true,
      expected: 'an http or https URL with a host, without credentials and without a query',
    });

/** An option with a token for `Authorization: Bearer`. */
export const bearerToken = (description: string) =>
  z
    .string()
    .regex(/^[\x21-\x7e]*$/)
    .default('')
    .meta({ description, secret: true, expected: 'ASCII text without spaces' });

/** `[skypilot]`: the admin policies for requests of SkyPilot users, and how SkyPilot connects. */
export const skypilotOptions = z.object({
  admin_policies: z.array(z.string()).default([]).meta({
    description:
      'The policies for every request, in this order; each gets the request as the previous one changed it. A name such as AddLabelsPolicy, package#Policy, or ./my-policy.js#MyPolicy. Empty = the SkyPilot endpoint is off.',
  }),
  audit_policies: z.array(z.string()).default([]).meta({
    description:
      'Policies of admin_policies to try without enforcing them, by the name of their class: such a policy is called, and what it would reject or change is logged as a warning and not done.',
  }),
  exempt_users: z
    .array(z.string().regex(/^[A-Za-z0-9][A-Za-z0-9-]*$/))
    .default([])
    .meta({
      expected: 'a comma-separated list of user ids, such as 1f3870be or sa-1f3870be, not names',
      description:
        "Users whose requests are allowed without policies, by the id that sky api info shows. Ids are only as reliable as the authentication of SkyPilot's API server: without authentication, users choose their own.",
    }),
  exempt_workspaces: z.array(z.string().min(1)).default([]).meta({
    description:
      'SkyPilot workspaces whose requests are allowed without policies. Applies only to workspaces that are private in the configuration of the API server: users can choose any other.',
  }),
  config_validation: z.enum(['error', 'warning', 'ignore']).default('warning').meta({
    description:
      "What happens to a task or configuration that does not match SkyPilot's own schema: unknown keys, wrong types and values. error: such a request is rejected, and a policy that returns one has failed. warning: it is logged and counted. ignore: it is not checked.",
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
    .array(z.string().regex(TOKEN_FORM))
    .default([])
    .meta({
      description:
        'Tokens that SkyPilot must send: as the password in that URL or in the .netrc of its API server, or as the query parameter token of the URL. If tokens and tokens_file are both unset, every client that can reach a loopback address is accepted; an empty list is an error.',
      secret: true,
      guard: true,
      expected: `a comma-separated list of ASCII strings of at least ${MIN_TOKEN_LENGTH} characters without spaces`,
    }),
  tokens_file: z.string().min(1).optional().meta({
    description:
      'A file with more tokens for SkyPilot, one per line; lines that start with # are comments. Read again when it changes.',
    file: true,
    guard: true,
    expected: 'the path of a file',
  }),
  isolation: z.enum(['foreign', 'worker', 'none']).default('foreign').meta({
    description:
      'Which policies run in a thread of their own, which is stopped at the deadline and restarted, so that a policy that hangs or crashes is named in the log and stops nothing else. foreign: policies of files and packages; included ones run in the process of the service, which is faster. worker: every policy. none: no policy.',
  }),
  deadline: z.int().min(1).max(29).default(20).meta({
    description: 'Time limit for all policies together. SkyPilot waits 30 seconds.',
    unit: 'seconds',
  }),
  api_server: apiServerUrl(
    "The URL of SkyPilot's API server, for policies that charge launches: it is asked which clusters are up. They need it.",
  ),
  api_server_token: bearerToken(
    'The token of a service account of an admin at the API server, sent as Authorization: Bearer. Empty = no such header.',
  ),
  api_server_token_file: z.string().min(1).optional().meta({
    description:
      'A file with that token, instead of api_server_token. Read again before each reconciliation.',
    file: true,
    expected: 'the path of a file',
  }),
  api_server_interval: z.int().min(5).max(3600).default(60).meta({
    description: 'Time between two reconciliations with the API server, by one of all replicas.',
    unit: 'seconds',
  }),
  api_server_timeout: z.int().min(1).max(600).default(60).meta({
    description: 'Time limit for each of these requests.',
    unit: 'seconds',
  }),
});

export type SkypilotOptions = z.infer<typeof skypilotOptions>;
