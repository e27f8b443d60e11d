import { z } from 'zod';
import type { Problem } from '../../base/errors.ts';
import type { SectionProblem } from '../../config/option-groups.ts';
import { MIN_TOKEN_LENGTH, TOKEN_FORM } from '../../config/secret.ts';
import { credentialProblems } from '../authentication/credentials.ts';
import { isNetwork } from '../listener/client-address.ts';

const path = z.string().min(1).optional();
const expectedPath = 'the path of a file';
const tokens = (description: string) =>
  z
    .array(z.string().regex(TOKEN_FORM))
    .default([])
    .meta({
      description,
      secret: true,
      guard: true,
      expected: `a list of ASCII texts of at least ${MIN_TOKEN_LENGTH} characters without spaces, with commas between them`,
    });
const tokensFile = (what: string) =>
  path.meta({
    description: `${what}, one per line; lines that start with # are comments. Read again when it changes.`,
    file: true,
    secretFile: true,
    guard: true,
    expected: expectedPath,
  });
const network = z.string().refine(isNetwork, { error: ({ input }) => `${JSON.stringify(input)} is neither` });
/** Keystone limits role names to 255 characters. */
const roles = (names: string[]) => z.array(z.string().min(1).max(255)).min(1).default(names);
const EXPECTED_ROLES = 'a list of names of roles, with commas between them';

/** `[service]`: addresses, tokens, certificates, limits and logs of the policy service. */
export const serviceOptions = z
  .object({
    host: z.string().regex(/^\S+$/).default('127.0.0.1').meta({
      description: 'The address to listen on. Read at the start.',
      expected: 'an address or a host name',
    }),
    port: z.int().min(0).max(65535).default(8642).meta({
      description: 'The port to listen on. 0 = any free port. Read at the start.',
    }),
    reuse_port: z.boolean().default(false).meta({
      description:
        'Whether other processes of the same user that set it too may listen on the same port: the system divides connections among them. Each is a replica of its own. Needs Node.js 22.12 or newer. Read at the start.',
    }),
    admin_host: z.string().regex(/^\S+$/).default('127.0.0.1').meta({
      description: 'The address for admin_port. Read at the start.',
      expected: 'an address or a host name',
    }),
    admin_port: z.int().min(0).max(65535).optional().meta({
      description:
        'A second port of this process alone, with /metrics, /healthz and /readyz, over https if the other one is. /metrics is then only there. 0 = any free port. Not set = all three are at port. Read at the start.',
    }),
    trusted_proxies: z.array(network).default([]).meta({
      description:
        'Addresses and networks of proxies whose X-Forwarded-For or Forwarded is trusted: the client is the rightmost address in it that is not one of these. Limits count by the address of the client, and logs have it. Not set = these headers are ignored, and the client is the address of the connection.',
      expected: 'addresses and networks such as 10.0.0.0/8, with commas between them',
    }),
    tokens: tokens(
      'Tokens that clients send as X-Auth-Token. With several, you can replace one without a gap. If neither tokens nor tokens_file is set, every client that can reach a loopback address is accepted; an empty list is an error. For the API and the console, their owner is a reader.',
    ),
    tokens_file: tokensFile('A file with more tokens'),
    operator_tokens: tokens(
      'Tokens of operators, who may do everything in the API and the console, but are not accepted at the endpoints for Blazar. None of them may be in another list.',
    ),
    operator_tokens_file: tokensFile('A file with more tokens of operators'),
    reader_tokens: tokens(
      'Tokens of readers, who see all projects in the API and the console, and change nothing. None of them may be in another list.',
    ),
    reader_tokens_file: tokensFile('A file with more tokens of readers'),
    metrics_tokens: tokens(
      'Tokens of Prometheus, which sends one as Authorization: Bearer or X-Auth-Token to see single budgets in /metrics. They permit nothing else. None of them may be in another list.',
    ),
    metrics_tokens_file: tokensFile('A file with more tokens for /metrics'),
    keystone_auth: z.boolean().default(false).meta({
      description:
        'Whether tokens of Keystone are accepted: Blazar may send one as X-Auth-Token, and users may use the API with theirs and log in to the console. They are validated with the account in [keystone].',
    }),
    token_cache_time: z.int().min(0).max(86_400).default(300).meta({
      description:
        'How long a validated token of Keystone counts as valid, and so how long a revoked one may still be used. Never beyond its expiry. 0 = each request validates it.',
      unit: 'seconds',
    }),
    service_roles: roles(['service', 'admin']).meta({
      description:
        'A token of Keystone is accepted at the endpoints for Blazar if its user has one of these roles in the project of the token.',
      expected: EXPECTED_ROLES,
    }),
    admin_roles: roles(['admin']).meta({
      description:
        'In the API and the console, the owner of a token of Keystone with one of these roles, in a project or in the system, is an operator.',
      expected: EXPECTED_ROLES,
    }),
    manager_roles: roles(['manager']).meta({
      description:
        'In the API and the console, the owner of a token of Keystone with one of these roles is a manager of the project of the token.',
      expected: EXPECTED_ROLES,
    }),
    reader_roles: roles(['reader', 'member']).meta({
      description:
        'In the API and the console, the owner of a token of Keystone with one of these roles is a member of the project of the token; in the system, a reader of all projects.',
      expected: EXPECTED_ROLES,
    }),
    allow_anonymous: z.boolean().default(false).meta({
      description:
        'Start even if every client that can reach the address is accepted. Unless this is true, each protocol that is served at an address other than loopback needs a token or a certificate.',
    }),
    session_lifetime: z.int().min(60).max(2_592_000).default(28_800).meta({
      description: 'Maximum duration of a session of the console.',
      unit: 'seconds',
    }),
    tls_cert_file: path.meta({
      description:
        'The certificate of the service with its chain, in PEM. Not set = http. Read again when it changes.',
      file: true,
      guard: true,
      expected: expectedPath,
    }),
    tls_key_file: path.meta({
      description: 'The key of that certificate, in PEM. Read again when it changes.',
      file: true,
      secretFile: true,
      guard: true,
      expected: expectedPath,
    }),
    client_ca_file: path.meta({
      description:
        'Clients without a certificate from these authorities are refused; PEM. Not set = clients need no certificate. Read again when it changes.',
      file: true,
      guard: true,
      expected: expectedPath,
    }),
    body_limit: z.int().min(1024).max(67_108_864).default(8_388_608).meta({
      description:
        'Maximum size of a request body, decompressed. A lease of ten thousand hosts has about 5 MB.',
      unit: 'bytes',
    }),
    deadline: z.int().min(1).max(3600).default(30).meta({
      description:
        'Maximum time for a decision, and for a request to arrive. A filter that has not answered by then has failed, and the lease is refused.',
      unit: 'seconds',
    }),
    max_concurrent: z.int().min(1).max(1_000_000).default(256).meta({
      description: 'Maximum number of decisions at the same time; further ones wait.',
    }),
    max_queued: z.int().min(0).max(1_000_000).default(1024).meta({
      description:
        'Maximum number of decisions that wait; further ones are refused at once, with status 503.',
    }),
    shutdown_grace: z.int().min(0).max(3600).default(35).meta({
      description: 'Maximum time to finish what is under way at a stop.',
      unit: 'seconds',
    }),
    hang_timeout: z.int().min(0).max(3600).default(30).meta({
      description:
        'Maximum time that a filter may block the process. After it, the log names the filter and the process ends with exit code 75, to be restarted. Never longer than shutdown_grace (or one second), since a blocked process receives no signal. 0 = no limit.',
      unit: 'seconds',
    }),
    metrics_budgets: z.int().min(0).max(10_000).default(0).meta({
      description:
        'How many budgets /metrics shows individually, to clients with one of metrics_tokens or a token of a reader or operator: the ones with the largest share taken. 0 = none.',
    }),
    log_level: z.enum(['debug', 'info', 'warn', 'error', 'silent']).default('info').meta({
      description: 'Verbosity of the log on standard error. Read at the start.',
    }),
    log_format: z.enum(['json', 'pretty']).default('json').meta({
      description:
        'The form of log lines. json: one object on each line. pretty: readable text. Read at the start.',
    }),
    decision_log: path.meta({
      description:
        'File to append a JSON line to for each decision; - for standard output. Not set = no decision log. Read at the start.',
      expected: 'the path of a file, or -',
    }),
    decision_log_when_full: z.enum(['drop', 'block']).default('drop').meta({
      description:
        'If the log cannot be written fast enough: drop decisions from it and count them, or block answers until there is room. Read at the start.',
    }),
    decision_log_requests: z.enum(['none', 'all']).default('none').meta({
      description:
        'Whether the decision log also holds the requests about leases, so that test --replay can judge them by another configuration. all: each request up to 64 KiB in which nothing looks like a secret. Read at the start.',
    }),
    decision_store: z.enum(['all', 'refused', 'none']).optional().meta({
      description:
        'Which decisions are also stored in the database of [ledger], where all replicas, the console, the API and the command decisions find them. refused: those that refused, failed, or would have refused (audit_filters). Not set = refused if an enabled filter or an admin policy for SkyPilot uses the ledger, otherwise none. If it is set, the ledger is opened for it alone. A decision never waits for it: if the database cannot be reached for long, decisions are dropped and counted.',
    }),
    decision_store_days: z.int().min(1).max(36_500).default(90).meta({
      description: 'How long a decision is stored, by the clock of the database.',
      unit: 'days',
    }),
    decision_store_max: z.int().min(1000).max(1_000_000_000).default(1_000_000).meta({
      description: 'Maximum number of stored decisions; beyond it, the oldest are removed.',
    }),
  })
  .superRefine((options, check) => {
    const { decision_log, decision_log_requests, port, admin_port } = options;
    const { tls_cert_file, tls_key_file, client_ca_file } = options;
    const add = (option: keyof typeof options, message: string) =>
      check.addIssue({ code: 'custom', path: [option], message });
    if (decision_log_requests === 'all' && decision_log === undefined) {
      add('decision_log_requests', 'expected decision_log with it: requests are written there');
    }
    if (port !== 0 && port === admin_port) {
      add('admin_port', 'expected another port than port');
    }
    const hasBoth = (tls_cert_file === undefined) === (tls_key_file === undefined);
    const files = 'expected tls_cert_file and tls_key_file';
    if (!hasBoth) {
      const lacking = tls_cert_file === undefined ? 'tls_key_file' : 'tls_cert_file';
      add(lacking, `${files} together, got one of them`);
    } else if (client_ca_file !== undefined && tls_cert_file === undefined) {
      add('client_ca_file', `${files} with it: without TLS, clients cannot present a certificate`);
    }
  });

export type ServiceOptions = z.infer<typeof serviceOptions>;

/** If `member` were an admin role, every user would be an operator, and no list of members would show it. */
function sharedRoles({ admin_roles, manager_roles, reader_roles }: ServiceOptions): SectionProblem[] {
  return Object.entries({ manager_roles, reader_roles }).flatMap(([other, roles]) => {
    const both = admin_roles.find((role) => roles.includes(role));
    const message = `expected roles that are not in ${other} too, got ${JSON.stringify(both)}`;
    return both === undefined ? [] : [{ option: 'admin_roles', message }];
  });
}

/** Budgets are to be shown, but no token gives access to them: an alert on them would never fire. */
function unseenBudgets(options: ServiceOptions): Problem[] {
  const lists = ['tokens', 'operator_tokens', 'reader_tokens', 'metrics_tokens'] as const;
  const isSeen = lists.some((list) => options[list].length > 0 || options[`${list}_file`] !== undefined);
  const message = 'without metrics_tokens or metrics_tokens_file, /metrics shows no single budgets';
  return options.metrics_budgets === 0 || isSeen
    ? []
    : [{ severity: 'warning', section: 'service', option: 'metrics_budgets', message }];
}

/** `version`: of Node.js. */
export function canReusePort(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major > 23 || (major === 23 && minor >= 1) || (major === 22 && minor >= 12);
}

function unsharedPort({ reuse_port }: ServiceOptions): SectionProblem[] {
  const { node } = process.versions;
  const message = `expected false with Node.js ${node}: true needs 22.12 or newer`;
  return reuse_port && !canReusePort(node) ? [{ option: 'reuse_port', message }] : [];
}

export const serviceSection = {
  section: 'service',
  schema: serviceOptions,
  check: (options: ServiceOptions) => [
    ...credentialProblems(options),
    ...sharedRoles(options),
    ...unseenBudgets(options),
    ...unsharedPort(options),
  ],
} as const;

/** Options that a reload cannot change: the socket and the logs are already open. */
export const READ_AT_START = [
  'host',
  'port',
  'reuse_port',
  'admin_host',
  'admin_port',
  'tls_cert_file',
  'tls_key_file',
  'client_ca_file',
  'log_level',
  'log_format',
  'decision_log',
  'decision_log_when_full',
  'decision_log_requests',
] as const satisfies readonly (keyof ServiceOptions)[];
