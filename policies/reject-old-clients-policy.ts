import { z } from 'zod';
import {
  AdminPolicy,
  MutatedUserRequest,
  needsOneOf,
  PolicyRejected,
  type UserRequest,
} from '../src/skypilot/index.ts';

/** A release; a pre-release, such as `0.12.0rc1`, comes before it, and `.post1` after it. */
const VERSION =
  /^v?(\d{1,9})\.(\d{1,9})(?:\.(\d{1,9}))?(?:[-._]?(dev|a|b|rc|post)[-._]?(\d{0,9}))?(?:\+[\w.]{1,100})?$/i;
/** `1.0.0-dev0 (commit: 1234567)`: SkyPilot's version of a build from source. */
const COMMIT = / \(commit: [0-9a-z]{1,64}\)$/i;
const STAGES = ['dev', 'a', 'b', 'rc', '', 'post'];

const options = z
  .object({
    reject_old_clients: z.int().min(1).max(100_000).optional().meta({
      description: "The lowest API version that a client may have; sky api info shows the server's.",
    }),
    reject_old_clients_version: z
      .string()
      .refine((text) => versionOf(text) !== undefined)
      .optional()
      .meta({
        description: 'The lowest version of the package skypilot that a client may have.',
        expected: 'a version such as 0.12.0',
      }),
    reject_old_clients_development: z.boolean().default(true).meta({
      description:
        'Whether reject_old_clients_version also refuses builds from source and nightly builds: they are all called 1.0.0.dev…, which does not tell their age. reject_old_clients judges them anyway.',
    }),
    reject_old_clients_unknown: z.enum(['validate', 'every', 'none']).default('validate').meta({
      description:
        'Which requests are refused that carry no version. SkyPilot 0.13 sends it only with validate, which is the first that its clients send for each command. every: refuses all launches of SkyPilot 0.13.',
    }),
    reject_old_clients_help: z
      .string()
      .min(1)
      .max(500)
      .default('Upgrade it: pip install --upgrade skypilot')
      .meta({ description: 'What the user of an old client reads after the reason.' }),
  })
  .superRefine(needsOneOf('RejectOldClientsPolicy', 'reject_old_clients', 'reject_old_clients_version'));

type Options = z.infer<typeof options>;

/**
 * Refuses clients whose API or package version is too old. Client-side calls have no version, so they are not
 * checked. Server-side, a version is checked wherever it is sent.
 */
export class RejectOldClientsPolicy extends AdminPolicy<Options> {
  static override readonly options = options;

  override validateAndMutate(userRequest: UserRequest): MutatedUserRequest {
    const { task, skypilotConfig, atClientSide } = userRequest;
    const wrong = atClientSide ? undefined : this.#mistakeOf(userRequest);
    if (wrong !== undefined) {
      throw new PolicyRejected(`${wrong} ${this.options.reject_old_clients_help}`);
    }
    return new MutatedUserRequest(task, skypilotConfig);
  }

  #mistakeOf({ requestName, clientApiVersion, clientVersion }: UserRequest): string | undefined {
    const { reject_old_clients: api, reject_old_clients_version: version } = this.options;
    const sent = clientVersion === null || clientVersion === 'unknown' ? undefined : clientVersion.trim();
    if ((api !== undefined && clientApiVersion === null) || (version !== undefined && sent === undefined)) {
      return this.#refusesUnknown(requestName)
        ? 'The version of your SkyPilot client is not known.'
        : undefined;
    }
    if (api !== undefined && clientApiVersion !== null && clientApiVersion < api) {
      return `Your SkyPilot client has API version ${clientApiVersion}; at least ${api} is needed.`;
    }
    return version === undefined || sent === undefined ? undefined : this.#mistakeOfVersion(sent, version);
  }

  #refusesUnknown(requestName: string): boolean {
    const { reject_old_clients_unknown: unknown } = this.options;
    return unknown === 'every' || (unknown === 'validate' && requestName === 'validate');
  }

  #mistakeOfVersion(sent: string, least: string): string | undefined {
    const shown = JSON.stringify(sent.slice(0, 100));
    const found = versionOf(sent);
    const wanted = versionOf(least);
    if (found === undefined || wanted === undefined) {
      return `The version of your SkyPilot client, ${shown}, cannot be read; at least ${least} is needed.`;
    }
    if (found[3] === STAGES.indexOf('dev')) {
      return this.options.reject_old_clients_development
        ? `Your SkyPilot client is a development version, ${shown}; a release from ${least} on is needed.`
        : undefined;
    }
    return isBefore(found, wanted)
      ? `Your SkyPilot client is ${shown}; at least ${least} is needed.`
      : undefined;
  }
}

/** Major, minor, patch, stage and its number, in order of significance. */
type Version = readonly number[];

function versionOf(text: string): Version | undefined {
  const [found, major, minor, patch = '0', stage = '', number = ''] =
    VERSION.exec(text.replace(COMMIT, '')) ?? [];
  if (found === undefined) {
    return undefined;
  }
  return [Number(major), Number(minor), Number(patch), STAGES.indexOf(stage.toLowerCase()), Number(number)];
}

function isBefore(a: Version, b: Version): boolean {
  const index = a.findIndex((part, at) => part !== b[at]);
  return index !== -1 && (a[index] ?? 0) < (b[index] ?? 0);
}
