import { z } from 'zod';
import { isLoopback } from '../../base/addresses.ts';
import { errorText } from '../../base/errors.ts';
import type { FurtherSection, SectionProblem } from '../../config/option-groups.ts';
import { mistakeInAuthorities } from '../../config/pem.ts';
import { readTextFile } from '../../config/read-file.ts';

const text = z.string().min(1).max(255);
const texts = (values: string[]) => z.array(text).default(values);
const EXPECTED_VALUES = 'a list of texts, with commas between them';

/** `[oidc]`: login to the console with an identity provider of OpenID Connect. */
export const oidcOptions = z.object({
  issuer: z
    .url({ protocol: /^https?$/ })
    .optional()
    .meta({
      description:
        'The issuer, such as https://keycloak.example.org/realms/cloud. Not set = there is no login with OpenID Connect.',
      guard: true,
    }),
  title: text.default('single sign-on').meta({ description: 'The name of the issuer on the login page.' }),
  client_id: text.optional().meta({ description: 'The client id of this service at the issuer.' }),
  client_secret: text.optional().meta({
    description: 'The client secret. Neither it nor client_secret_file = a public client, with PKCE alone.',
    secret: true,
  }),
  client_secret_file: z.string().min(1).optional().meta({
    description: 'A file with the secret. Read again at each login.',
    file: true,
    secretFile: true,
    expected: 'the path of a file',
  }),
  redirect_url: z
    .url({ protocol: /^https?$/ })
    .optional()
    .meta({
      description:
        'Where the issuer redirects to: the address of this service, with the path /login/oidc/callback. Default: the address in the request of the browser.',
    }),
  scopes: texts(['openid', 'profile']).meta({
    description: 'The scopes to ask for, openid among them.',
    expected: EXPECTED_VALUES,
  }),
  userinfo: z.boolean().default(false).meta({
    description: 'Whether to ask the userinfo endpoint for claims that are not in the ID token.',
  }),
  user_claim: text.default('sub').meta({
    description:
      'The claim that identifies the user. For the budgets of users, it must be what Keystone calls the id of the user.',
  }),
  name_claim: text
    .default('preferred_username')
    .meta({ description: 'The claim with the name of the user.' }),
  roles_claim: text.default('roles').meta({
    description:
      'The claim with the roles of the user in the cloud: a text or a list. A dot leads into an object: realm_access.roles.',
  }),
  operator_values: texts([]).meta({
    description: 'A user with one of these roles is an operator.',
    expected: EXPECTED_VALUES,
  }),
  reader_values: texts([]).meta({
    description: 'A user with one of these roles is a reader of all projects.',
    expected: EXPECTED_VALUES,
  }),
  projects_claim: text.default('groups').meta({
    description: 'The claim with the projects of the user: a text or a list. A dot leads into an object.',
  }),
  project_pattern: text.default('/projects/{project}/{role}').meta({
    description:
      'The form of a project in that claim. {project} and {role} stand for anything without a slash. Without {role}, the user is a member.',
  }),
  manager_values: texts(['manager']).meta({
    description: 'With one of these texts as {role}, the user is a manager of the project.',
    expected: EXPECTED_VALUES,
  }),
  member_values: texts(['member', 'reader']).meta({
    description: 'With one of these texts as {role}, the user is a member of the project.',
    expected: EXPECTED_VALUES,
  }),
  project_ids: z.record(text, text).default({}).meta({
    description:
      'The ids of projects that the claim calls otherwise, as name:id. A project that is not in it is called by its id.',
    expected: 'a list of name:id, with commas between them',
  }),
  cafile: z.string().min(1).optional().meta({
    description: 'CA certificates for the issuer, in PEM. Not set = those of Node.js.',
    file: true,
    expected: 'the path of a file',
  }),
  timeout: z.int().min(1).max(60).default(10).meta({
    description: 'Maximum duration of a call of the issuer.',
    unit: 'seconds',
  }),
});

export type OidcOptions = z.infer<typeof oidcOptions>;

export const CALLBACK_PATH = '/login/oidc/callback';
/** Receives logouts of the issuer: OpenID Connect Back-Channel Logout. */
export const BACKCHANNEL_LOGOUT_PATH = '/login/oidc/backchannel-logout';

export const oidcSection = {
  section: 'oidc',
  schema: oidcOptions,
  check: problemsOf,
} as const satisfies FurtherSection;

function problemsOf(options: OidcOptions): SectionProblem[] {
  const { issuer, client_id, client_secret, client_secret_file, redirect_url, scopes } = options;
  if (issuer === undefined) {
    const alone = (['client_id', 'client_secret', 'client_secret_file', 'redirect_url'] as const).find(
      (name) => options[name] !== undefined,
    );
    return alone === undefined ? [] : [{ option: alone, message: 'has no effect without issuer: set it' }];
  }
  const problems: SectionProblem[] = [];
  const add = (option: string, message: string) => problems.push({ option, message });
  if (client_id === undefined) {
    add('issuer', 'expected client_id with it');
  }
  if (client_secret !== undefined && client_secret_file !== undefined) {
    add('client_secret_file', 'expected client_secret or client_secret_file, got both');
  }
  if (client_secret_file !== undefined) {
    try {
      secretOf(options);
    } catch (thrown) {
      add('client_secret_file', errorText(thrown));
    }
  }
  const { cafile } = options;
  const mistake = cafile === undefined ? undefined : mistakeInAuthorities(readTextFile(cafile), cafile);
  if (mistake !== undefined) {
    add('cafile', mistake);
  }
  if (!isTrusted(issuer)) {
    add('issuer', 'expected https: over http, anyone on the network path could log in as any user');
  }
  for (const [option, url] of Object.entries({ issuer, redirect_url })) {
    const { username, password, search, hash } = new URL(url ?? issuer);
    if (username + password + search + hash !== '') {
      add(option, 'expected an address without credentials, query and fragment');
    }
  }
  if (redirect_url !== undefined && !isTrusted(redirect_url)) {
    add('redirect_url', 'expected https: over http, anyone on the network path could take over the session');
  }
  if (redirect_url !== undefined && new URL(redirect_url).pathname !== CALLBACK_PATH) {
    add('redirect_url', `expected an address with the path ${CALLBACK_PATH}`);
  }
  if (!scopes.includes('openid')) {
    add('scopes', 'expected openid among them');
  }
  if (!options.project_pattern.includes('{project}')) {
    add('project_pattern', 'expected {project} in it');
  }
  if (options.project_pattern.includes('}{')) {
    add('project_pattern', 'expected a text between {project} and {role}: nothing tells where one ends');
  }
  for (const [higher, lower] of [
    ['operator_values', 'reader_values'],
    ['manager_values', 'member_values'],
  ] as const) {
    const both = options[higher].find((value) => options[lower].includes(value));
    if (both !== undefined) {
      add(lower, `expected values that are not in ${higher} too, got ${JSON.stringify(both)}`);
    }
  }
  return problems;
}

/** Http is only allowed for loopback addresses. */
export function isTrusted(address: string): boolean {
  const { protocol, hostname } = new URL(address);
  return protocol === 'https:' || isLoopback(hostname.replace(/^\[|\]$/g, ''));
}

const MAX_SECRET_BYTES = 4096;

/** `undefined` = a public client. Throws an `Error` that names the file, never its content. */
export function secretOf({ client_secret, client_secret_file: file }: OidcOptions): string | undefined {
  if (file === undefined) {
    return client_secret;
  }
  const secret = readTextFile(file, MAX_SECRET_BYTES).replace(/\r?\n$/, '');
  if (secret === '' || /[\r\n]/.test(secret)) {
    throw new Error(`${file}: expected one line with the secret`);
  }
  return secret;
}
