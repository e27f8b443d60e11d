/** Whether people must show who they are. */
import { type Configuration, sectionOf } from '../../enforcement/configuration.ts';
import type { ProtocolTokens } from '../authentication/protocols.ts';
import { serviceSection } from '../configuration/options.ts';
import { oidcSection } from './oidc-options.ts';

/** With any way to prove who one is, everybody must. */
export function asksPeople({ blazar, people }: ProtocolTokens, configuration: Configuration): boolean {
  const tokens = [...blazar, ...people.operator, ...people.reader];
  const { keystone_auth } = sectionOf(configuration, serviceSection);
  return tokens.length > 0 || keystone_auth || sectionOf(configuration, oidcSection).issuer !== undefined;
}
