import { z } from 'zod';

const text = z.string().min(1).optional();

/** `[keystone]`: our own Keystone account, with the option names of keystoneauth. */
export const keystoneOptions = z.object({
  cloud: text.meta({
    description:
      'Take what is not set here from this cloud of clouds.yaml; envvars = from OS_CLOUD or the other OS_* variables. Not set = neither is read.',
  }),
  auth_url: z
    .url({ protocol: /^https?$/ })
    .optional()
    .meta({ description: 'The address of Keystone, such as https://keystone.example.org:5000/v3.' }),
  username: text.meta({ description: 'The user name of the account.' }),
  password: text.meta({ description: 'The password of the user.', secret: true }),
  password_file: text.meta({
    description: 'A file with the password. Read again when it changes.',
    file: true,
    secretFile: true,
    expected: 'the path of a file',
  }),
  user_domain_name: text.meta({ description: 'The domain of the user. Default: Default.' }),
  user_domain_id: text.meta({ description: 'The id of the domain of the user, instead of its name.' }),
  project_name: text.meta({ description: 'The project that the tokens are for.' }),
  project_id: text.meta({ description: 'The id of that project, instead of its name and domain.' }),
  project_domain_name: text.meta({ description: 'The domain of that project. Default: Default.' }),
  project_domain_id: text.meta({ description: 'The id of the domain of that project, instead of its name.' }),
  application_credential_id: text.meta({
    description: 'An application credential, instead of user, password and project.',
  }),
  application_credential_secret: text.meta({ description: 'Its secret.', secret: true }),
  application_credential_secret_file: text.meta({
    description: 'A file with its secret. Read again when it changes.',
    file: true,
    secretFile: true,
    expected: 'the path of a file',
  }),
  region_name: text.meta({
    description: 'The region of the endpoints in the catalog. Needed if the catalog has several.',
  }),
  interface: z.enum(['public', 'internal', 'admin']).optional().meta({
    description: 'Which endpoints of the catalog are used. Default: public.',
  }),
  cafile: text.meta({
    description:
      'CA certificates for Keystone and the services of the catalog, in PEM. Not set = those of Node.js.',
    file: true,
    expected: 'the path of a file',
  }),
  timeout: z.int().min(1).max(3600).default(10).meta({
    description: 'Maximum duration of a call of Keystone, or of a service of the catalog.',
    unit: 'seconds',
  }),
  resolve_names: z.boolean().default(false).meta({
    description:
      'Whether to ask Keystone for the names of projects, domains and users, and for the tags of projects. Filters, messages, the decision log, the console and commands then show names, and limits may be written as name@domain or for a tag. The account must be allowed to read projects, users and domains. Names are compared exactly, also in upper and lower case.',
  }),
  names_cache_time: z.int().min(1).max(86_400).default(300).meta({
    description: 'How long names and tags are used without asking Keystone again.',
    unit: 'seconds',
  }),
  names_max_age: z.int().min(1).max(2_592_000).default(86_400).meta({
    description:
      'How long names and tags are used while Keystone cannot be asked. Older ones are unknown: limits by name and tag no longer apply to the project, the general limits do.',
    unit: 'seconds',
  }),
});

export type KeystoneOptions = z.infer<typeof keystoneOptions>;
