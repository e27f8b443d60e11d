import type { SectionProblem } from '../../config/option-groups.ts';
import { type Configuration, sectionOf } from '../../enforcement/configuration.ts';
import { notificationsSection } from '../../enforcement/notifications/options.ts';
import { type KubernetesOptions, kubernetesSection } from '../../kubernetes/options.ts';
import { ledgerSection } from '../../ledger/options.ts';
import { blazarSection, keystoneSection } from '../../openstack/options.ts';
import type { SkypilotOptions } from '../../skypilot/options.ts';
import { skypilotSection } from '../../skypilot/section.ts';
import {
  mistakesOf,
  readAuthorities,
  readTokens,
  readUserTokens,
  refuseShared,
  type ServiceTokenOptions,
  type TokenOptions,
} from '../authentication/credentials.ts';
import type { ProtocolName, ProtocolTokens } from '../authentication/protocols.ts';
import { isOwnPath } from '../own-paths.ts';
import { oidcSection } from '../users/oidc-options.ts';
import { serviceSection } from './options.ts';

/** All sections except `[enforcement]`, for the service and for commands that check a configuration. */
export const SECTIONS = [
  serviceSection,
  ledgerSection,
  keystoneSection,
  blazarSection,
  oidcSection,
  notificationsSection,
  {
    ...skypilotSection,
    check: (options: SkypilotOptions) => [...pathProblems(options), ...mistakesOf(() => readTokens(options))],
  },
  {
    ...kubernetesSection,
    check: async (options: KubernetesOptions) => [
      ...(await kubernetesSection.check(options)),
      ...mistakesOf(
        () => readTokens(options),
        () => options.client_ca_file === undefined || readAuthorities(options.client_ca_file),
      ),
    ],
  },
] as const;

/** The token options of each authenticator, from a valid configuration. */
export function tokenOptionsOf(
  configuration: Configuration,
): Readonly<Record<ProtocolName, TokenOptions>> & { readonly blazar: ServiceTokenOptions } {
  return {
    blazar: sectionOf(configuration, serviceSection),
    skypilot: sectionOf(configuration, skypilotSection),
    kubernetes: sectionOf(configuration, kubernetesSection),
  };
}

/** Reads the tokens of a configuration and its files. @throws CredentialError */
export function readProtocolTokens(configuration: Configuration): ProtocolTokens {
  const { blazar, skypilot, kubernetes } = tokenOptionsOf(configuration);
  const others = { skypilot: readTokens(skypilot), kubernetes: readTokens(kubernetes) };
  const users = readUserTokens(blazar);
  const further = { '[skypilot] tokens': others.skypilot, '[kubernetes] tokens': others.kubernetes };
  // Many clients have these tokens, and some are sent in the URL.
  refuseShared(blazar, users, further);
  return { blazar: readTokens(blazar), ...others, users };
}

function pathProblems({ path }: SkypilotOptions): SectionProblem[] {
  const message = `expected a path of its own, got ${path}, where the service answers already`;
  return isOwnPath(path) ? [{ option: 'path', message }] : [];
}
