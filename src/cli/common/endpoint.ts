/** The flags of commands that can use a service instead of the ledger. */
import type { Command } from 'commander';
import { errorText } from '../../base/errors.ts';
import type { ApiClient, ApiClientOptions } from '../../client/client.ts';
import { mistakeInAuthorities } from '../../config/pem.ts';
import { isReadByEveryone, readTextFile, systemErrorText } from '../../config/read-file.ts';
import { fail, UsageError } from './output.ts';

export interface EndpointFlags {
  readonly endpoint?: string;
  readonly tokenFile?: string;
  readonly osCloud?: string;
  readonly caFile?: string;
}

const TOKEN_VARIABLE = 'BLAZAR_ENFORCEMENT_TOKEN';

const TOKEN = `The token comes from --token-file, $${TOKEN_VARIABLE}, --os-cloud or the variables OS_*.`;

export function addEndpointFlags(command: Command): Command {
  return addTokenFlags(
    command.option(
      '--endpoint <url>',
      `Ask this service instead of the ledger of the configuration. ${TOKEN}`,
    ),
  );
}

/** For commands that need a service. */
export function requireEndpoint(command: Command): Command {
  return addTokenFlags(command.requiredOption('--endpoint <url>', `The service to ask. ${TOKEN}`));
}

function addTokenFlags(command: Command): Command {
  return command
    .option('--token-file <path>', 'With --endpoint: a file with the token, in one line.')
    .option('--os-cloud <name>', 'With --endpoint: ask Keystone for a token with this cloud of clouds.yaml.')
    .option('--ca-file <path>', 'With --endpoint: the authorities to trust, in PEM.');
}

/**
 * Uses the service of `--endpoint`, otherwise `local`. @throws UsageError for flags that need `--endpoint`
 */
export async function localOrRemote(
  flags: EndpointFlags,
  local: () => Promise<void>,
  remote: (client: ApiClient) => Promise<void>,
): Promise<void> {
  const { endpoint, tokenFile, osCloud, caFile } = flags;
  if (endpoint !== undefined) {
    return withEndpoint(endpoint, flags, remote);
  }
  if ([tokenFile, osCloud, caFile].some((flag) => flag !== undefined)) {
    throw new UsageError('--token-file, --os-cloud and --ca-file need --endpoint');
  }
  return local();
}

/** Calls a service. If it fails, prints one line and sets exit code 3. */
export async function withEndpoint(
  endpoint: string,
  flags: EndpointFlags,
  work: (client: ApiClient) => Promise<void>,
): Promise<void> {
  const { createApiClient } = await import('../../client/client.ts');
  const ca = pemOf(flags.caFile);
  const credentials = await credentialsOf(flags);
  let client: ApiClient;
  try {
    client = createApiClient({ endpoint, ...credentials, ca });
  } catch (thrown) {
    throw new UsageError(`--endpoint: ${errorText(thrown)}`);
  }
  try {
    await endpointFailures(() => work(client));
  } finally {
    await client.close();
  }
}

/** If a service fails, prints one line and sets exit code 3. @throws UsageError if it refuses */
export async function endpointFailures(work: () => Promise<void>): Promise<void> {
  const { EndpointError } = await import('../../client/bounded-fetch.ts');
  try {
    await work();
  } catch (thrown) {
    if (!(thrown instanceof EndpointError)) {
      throw thrown;
    }
    if (thrown.kind === 'refused') {
      throw new UsageError(thrown.message);
    }
    fail(thrown.message);
  }
}

/** The certificates of `--ca-file`. @throws UsageError */
export function pemOf(caFile: string | undefined): string | undefined {
  if (caFile === undefined) {
    return undefined;
  }
  const pem = fileText('--ca-file', caFile);
  const mistake = mistakeInAuthorities(pem, caFile);
  if (mistake !== undefined) {
    throw new UsageError(`--ca-file: ${mistake}`);
  }
  return pem;
}

/** Empty without any flag or variable: the service may need no credentials. */
async function credentialsOf({
  tokenFile,
  osCloud,
}: EndpointFlags): Promise<Pick<ApiClientOptions, 'token' | 'cloud'>> {
  const { env } = process;
  const token = await tokenOf(tokenFile, osCloud === undefined ? TOKEN_VARIABLE : undefined);
  return token === undefined
    ? { cloud: osCloud ?? (env.OS_CLOUD || env.OS_AUTH_URL ? 'envvars' : undefined) }
    : { token };
}

/** The token of a file, otherwise of a variable. `undefined` = neither is set. @throws UsageError */
export async function tokenOf(
  tokenFile: string | undefined,
  variable: string | undefined,
): Promise<string | undefined> {
  if (tokenFile !== undefined) {
    const token = fileText('--token-file', tokenFile).trim();
    if (isReadByEveryone(tokenFile)) {
      throw new UsageError(`--token-file: everyone may read ${tokenFile}; remove that permission: chmod o-r`);
    }
    return checked('--token-file', token);
  }
  const token = variable === undefined ? undefined : process.env[variable];
  return token ? checked(`$${variable}`, token) : undefined;
}

async function checked(where: string, token: string): Promise<string> {
  const { isToken } = await import('../../client/client.ts');
  if (!isToken(token)) {
    throw new UsageError(`${where}: expected a token: one line of ASCII without spaces`);
  }
  return token;
}

function fileText(flag: string, path: string): string {
  try {
    return readTextFile(path);
  } catch (thrown) {
    throw new UsageError(`${flag}: ${path}: ${systemErrorText(thrown)}`);
  }
}
