/** The flags of commands that can ask a service instead of the ledger. */
import type { Command } from 'commander';
import { errorText } from '../../base/errors.ts';
import type { ApiClient } from '../../client/client.ts';
import { isReadByEveryone, readTextFile, systemErrorText } from '../../config/read-file.ts';
import type { KeystoneErrorCode } from '../../openstack/contract.ts';
import { ExitCode, onOneLine, UsageError } from '../output.ts';

export interface EndpointFlags {
  readonly endpoint?: string;
  readonly tokenFile?: string;
  readonly osCloud?: string;
  readonly caFile?: string;
}

const TOKEN_VARIABLE = 'BLAZAR_ENFORCEMENT_TOKEN';

export function addEndpointFlags(command: Command): Command {
  return command
    .option(
      '--endpoint <url>',
      `Ask this service instead of the ledger of the configuration. The token comes from --token-file, $${TOKEN_VARIABLE}, --os-cloud or the variables OS_*.`,
    )
    .option('--token-file <path>', 'With --endpoint: a file with the token, in one line.')
    .option('--os-cloud <name>', 'With --endpoint: ask Keystone for a token with this cloud of clouds.yaml.')
    .option('--ca-file <path>', 'With --endpoint: the authorities to trust, in PEM.');
}

/** Asks a service. When it does not answer as it should, prints one line and sets exit code 3. */
export async function withEndpoint(
  endpoint: string,
  flags: EndpointFlags,
  work: (client: ApiClient['api'], origin: string) => Promise<void>,
): Promise<void> {
  const { createApiClient } = await import('../../client/client.ts');
  const { EndpointError } = await import('../../client/bounded-fetch.ts');
  const ca = flags.caFile === undefined ? undefined : fileText('--ca-file', flags.caFile);
  const clientWith = (token: string | undefined) => {
    try {
      return createApiClient({ endpoint, token, ca });
    } catch (thrown) {
      throw new UsageError(`--endpoint: ${errorText(thrown)}`);
    }
  };
  let client: ApiClient | undefined;
  try {
    client = clientWith(await tokenOf(flags));
    await work(client.api, new URL(endpoint).origin);
  } catch (thrown) {
    if (!(thrown instanceof EndpointError)) {
      throw thrown;
    }
    if (thrown.kind === 'refused') {
      throw new UsageError(thrown.message);
    }
    process.stderr.write(`error: ${onOneLine(thrown.message)}\n`);
    process.exitCode = ExitCode.failed;
  } finally {
    await client?.close();
  }
}

/** `undefined` = none: the service may need none. */
async function tokenOf({ tokenFile, osCloud }: EndpointFlags): Promise<string | undefined> {
  const { env } = process;
  if (tokenFile !== undefined) {
    const token = fileText('--token-file', tokenFile).trim();
    if (isReadByEveryone(tokenFile)) {
      throw new UsageError(`--token-file: everyone may read ${tokenFile}; remove that permission: chmod o-r`);
    }
    return checked('--token-file', token);
  }
  if (osCloud === undefined && env[TOKEN_VARIABLE]) {
    return checked(`$${TOKEN_VARIABLE}`, env[TOKEN_VARIABLE]);
  }
  const cloud = osCloud ?? (env.OS_CLOUD || env.OS_AUTH_URL ? 'envvars' : undefined);
  return cloud === undefined ? undefined : keystoneToken(cloud);
}

function checked(where: string, token: string): string {
  if (!/^[\x21-\x7e]{1,16384}$/.test(token)) {
    throw new UsageError(`${where}: expected a token: one line of ASCII without spaces`);
  }
  return token;
}

/** What Keystone says of what was typed. Anything else is a fault of Keystone, or on the way to it. */
const MISTAKES: readonly KeystoneErrorCode[] = ['credentials', 'forbidden', 'configuration'];

async function keystoneToken(cloud: string): Promise<string> {
  const { keystoneOptions } = await import('../../openstack/keystone-options.ts');
  const { createKeystone } = await import('../../openstack/keystone.ts');
  const { createSharedServices } = await import('../../enforcement/services.ts');
  const quiet = () => {};
  const logger = { debug: quiet, info: quiet, warn: quiet, error: quiet };
  const keystone = createKeystone(keystoneOptions.parse({ cloud }), createSharedServices({ logger }));
  try {
    return await keystone.token({});
  } catch (thrown) {
    const { EndpointError } = await import('../../client/bounded-fetch.ts');
    const { KeystoneError } = await import('../../openstack/contract.ts');
    const isMistake = thrown instanceof KeystoneError && MISTAKES.includes(thrown.code);
    const message = `no token of Keystone: ${errorText(thrown)}`;
    throw isMistake ? new UsageError(message) : new EndpointError('failed', message);
  } finally {
    await keystone.close();
  }
}

function fileText(flag: string, path: string): string {
  try {
    return readTextFile(path);
  } catch (thrown) {
    throw new UsageError(`${flag}: ${path}: ${systemErrorText(thrown)}`);
  }
}
