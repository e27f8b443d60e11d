import { z } from 'zod';
import { credentialProblems } from './credentials.ts';

const path = z.string().min(1).optional();
const expectedPath = 'the path of a file';

/** `[service]`: how the policy service is reached, what bounds it, and what it says of itself. */
export const serviceOptions = z
  .object({
    host: z.string().regex(/^\S+$/).default('127.0.0.1').meta({
      description: 'The address on which the policy service listens. Read at the start.',
      expected: 'an address or a host name',
    }),
    port: z.int().min(0).max(65535).default(8642).meta({
      description: 'The port on which it listens. 0 = any that is free. Read at the start.',
    }),
    tokens: z
      .array(z.string().regex(/^[\x21-\x7e]+$/))
      .default([])
      .meta({
        description:
          'What callers send as X-Auth-Token. More than one, so that a token can be replaced without a gap. Neither set nor tokens_file = everyone may ask who reaches a loopback address; set and empty is an error.',
        secret: true,
        guard: true,
        expected: 'a list of ASCII texts without spaces, with commas between them',
      }),
    tokens_file: path.meta({
      description:
        'A file with further tokens, one a line; a line that starts with # is a comment. Read again when it changes.',
      file: true,
      secretFile: true,
      guard: true,
      expected: expectedPath,
    }),
    allow_anonymous: z.boolean().default(false).meta({
      description:
        'Whether to start although everyone who reaches the address may ask: at one that is not a loopback address, each protocol that is served asks for a token or a certificate unless this is true.',
    }),
    session_lifetime: z.int().min(60).max(2_592_000).default(28_800).meta({
      description: 'How long a login to the page lasts, at most.',
      unit: 'seconds',
    }),
    tls_cert_file: path.meta({
      description:
        'The certificate that the service shows, with those that lead to its authority, in PEM. Not set = http. Read again when it changes.',
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
        'The authorities whose certificates callers must show, in PEM. Not set = callers show none. Read again when it changes.',
      file: true,
      guard: true,
      expected: expectedPath,
    }),
    body_limit: z.int().min(1024).max(67_108_864).default(8_388_608).meta({
      description: 'The longest body of a request, unpacked. A lease of ten thousand hosts has some 5 MB.',
      unit: 'bytes',
    }),
    deadline: z.int().min(1).max(3600).default(30).meta({
      description:
        'How long a decision may take, and how long a request may take to arrive. What has not answered by then has failed, and the lease is refused.',
      unit: 'seconds',
    }),
    max_concurrent: z.int().min(1).max(1_000_000).default(256).meta({
      description: 'So many decisions are made at the same time; further ones wait.',
    }),
    max_queued: z.int().min(0).max(1_000_000).default(1024).meta({
      description: 'So many decisions wait; further ones are refused at once, with the status 503.',
    }),
    shutdown_grace: z.int().min(0).max(3600).default(35).meta({
      description: 'How long what is under way may take to finish when the service is told to stop.',
      unit: 'seconds',
    }),
    hang_timeout: z.int().min(0).max(3600).default(30).meta({
      description:
        'How long a filter may hold the process so that nobody is answered. Then the log says which one it was, and the process ends with exit code 75, to be started again. Never longer than shutdown_grace (or one second), since a process that is held hears no signal. 0 = for ever.',
      unit: 'seconds',
    }),
    log_level: z.enum(['debug', 'info', 'warn', 'error', 'silent']).default('info').meta({
      description: 'What is logged on standard error. Read at the start.',
    }),
    log_format: z.enum(['json', 'pretty']).default('json').meta({
      description: 'One JSON object a line, or lines for people. Read at the start.',
    }),
    decision_log: path.meta({
      description:
        'The file to which a JSON line is appended for each decision; - is standard output. Not set = none is written. Read at the start.',
      expected: 'the path of a file, or -',
    }),
    decision_log_when_full: z.enum(['drop', 'block']).default('drop').meta({
      description:
        'When lines come faster than they can be written: drop them and count them, or block the answers until there is room. Read at the start.',
    }),
  })
  .superRefine(({ tls_cert_file, tls_key_file, client_ca_file }, check) => {
    if ((tls_cert_file === undefined) !== (tls_key_file === undefined)) {
      check.addIssue({
        code: 'custom',
        path: [tls_cert_file === undefined ? 'tls_key_file' : 'tls_cert_file'],
        message: 'expected tls_cert_file and tls_key_file together, got one of them',
      });
    } else if (client_ca_file !== undefined && tls_cert_file === undefined) {
      check.addIssue({
        code: 'custom',
        path: ['client_ca_file'],
        message: 'expected tls_cert_file and tls_key_file with it: without TLS nobody shows a certificate',
      });
    }
  });

export type ServiceOptions = z.infer<typeof serviceOptions>;

/** The section of the policy service, as the configuration is asked for it. */
export const serviceSection = {
  section: 'service',
  schema: serviceOptions,
  check: credentialProblems,
} as const;

/** What a reload can't change: the socket is open, and the logs are. */
export const READ_AT_START = [
  'host',
  'port',
  'tls_cert_file',
  'tls_key_file',
  'client_ca_file',
  'log_level',
  'log_format',
  'decision_log',
  'decision_log_when_full',
] as const satisfies readonly (keyof ServiceOptions)[];
