/** The flags that say what SkyPilot sends beside a task. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { RequestFacts } from '../../skypilot/request/sent-request.ts';

export interface RequestFlags {
  readonly skypilotConfig?: string;
  readonly requestName?: string;
  readonly clusterName?: string;
  readonly idleMinutes?: number;
  readonly down?: boolean;
  readonly dryRun?: boolean;
  readonly clientSide?: boolean;
  readonly user?: { readonly id: string; readonly name: string };
  readonly workspace?: string;
  readonly clientVersion?: string;
  readonly clientApiVersion?: number;
}

/** The flags, for a message. */
export const REQUEST_FLAGS: Readonly<Record<keyof RequestFlags, string>> = {
  skypilotConfig: '--skypilot-config',
  requestName: '--request-name',
  clusterName: '--cluster-name',
  idleMinutes: '--idle-minutes',
  down: '--down',
  dryRun: '--dry-run',
  clientSide: '--client-side',
  user: '--user',
  workspace: '--workspace',
  clientVersion: '--client-version',
  clientApiVersion: '--client-api-version',
};

export function addRequestFlags(command: Command): Command {
  return command
    .option('--skypilot-config <file>', 'For a task: the configuration, in YAML. Default: empty.')
    .option(
      '--request-name <name>',
      'For a task: the request name. Default: launch, or jobs.launch for a pipeline.',
    )
    .option('--cluster-name <name>', 'For a task: the cluster name.')
    .addOption(
      new Option(
        '--idle-minutes <minutes>',
        'For a task: minutes of idleness before autostop, as sky launch --idle-minutes-to-autostop sets them.',
      ).argParser((text) => wholeNumber(text, -1)),
    )
    .option('--down', 'For a task: tear the cluster down instead of stopping it.')
    .option('--dry-run', 'For a task: only try the launch.')
    .addOption(
      new Option(
        '--user <id[:name]>',
        'For a task: the user. Default: 00000000:user. Without a name, the id is the name.',
      ).argParser(userOf),
    )
    .option(
      '--workspace <name>',
      'For a task: the active workspace. Default: that of the configuration, otherwise default.',
    )
    .option('--client-side', 'For a task: the client asks, which sends neither user nor versions.')
    .option('--client-version <version>', 'For a task: the version of the client. Default: unknown.')
    .addOption(
      new Option(
        '--client-api-version <number>',
        'For a task: the API version of the client. Default: none, as when SkyPilot launches.',
      ).argParser((text) => wholeNumber(text, 0)),
    );
}

export function factsOf(flags: RequestFlags): RequestFacts {
  const { requestName, clusterName, idleMinutes, down, clientSide, user, workspace } = flags;
  const { dryRun: dryrun, clientVersion, clientApiVersion } = flags;
  return {
    ...{ requestName, clusterName, idleMinutes, down, dryrun },
    ...{ clientSide, user, workspace, clientVersion, clientApiVersion },
  };
}

/** `id:name`, or one text that is both. */
export function userOf(text: string): { id: string; name: string } {
  const colon = text.indexOf(':');
  const [id, name] = colon === -1 ? [text, text] : [text.slice(0, colon), text.slice(colon + 1)];
  if (id === '' || name === '') {
    throw new InvalidArgumentError('expected an id, or id:name');
  }
  return { id, name };
}

function wholeNumber(text: string, least: number): number {
  const number = Number(text);
  if (!/^-?\d{1,9}$/.test(text) || number < least) {
    throw new InvalidArgumentError(`expected a whole number of at least ${least}`);
  }
  return number;
}
