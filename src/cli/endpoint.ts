/** The flags of commands that can ask a service instead of the ledger. */
import type { Command } from 'commander';

export interface EndpointFlags {
  readonly endpoint?: string;
  readonly tokenFile?: string;
  readonly osCloud?: string;
  readonly caFile?: string;
}

export const TOKEN_VARIABLE = 'BLAZAR_ENFORCEMENT_TOKEN';

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
