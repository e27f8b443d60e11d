/** Checks across sections that can prevent `serve` from starting, or a reload. */

import { isLoopback } from '../../base/addresses.ts';
import type { Problem } from '../../base/errors.ts';
import { atOrigin } from '../../config/option-groups.ts';
import { type Configuration, sectionOf } from '../../enforcement/configuration.ts';
import { kubernetesSection, servesKubernetes } from '../../kubernetes/options.ts';
import { isKeystoneSet, keystoneSection } from '../../openstack/options.ts';
import { skypilotSection } from '../../skypilot/section.ts';
import { asProblem, mistakesOf, type TokenOptions } from '../authentication/credentials.ts';
import {
  asksForCertificate,
  type CertificateRules,
  PROTOCOL_NAMES,
  PROTOCOLS,
  type ProtocolName,
} from '../authentication/protocols.ts';
import { serviceSection } from './options.ts';
import { readProtocolTokens, tokenOptionsOf } from './sections.ts';

/** Settings that a reload cannot change. */
export interface Started {
  readonly host: string;
  readonly certificates: CertificateRules;
  /** The file of `[kubernetes] client_ca_file`. */
  readonly kubernetesAuthorities: string | undefined;
}

/** For a valid configuration. `started`: of the running service. Default: as in the configuration. */
export function startProblems(configuration: Configuration, started?: Started): Problem[] {
  const { host, certificates } = started ?? startedWith(configuration);
  return [
    ...certificateProblems(configuration),
    ...keystoneProblems(configuration),
    ...unprotected(configuration, host, certificates),
    ...sharedTokens(configuration),
  ].map((problem) => atOrigin({ severity: 'error', ...problem }, configuration.settings, { isSafe: true }));
}

export function startedWith(configuration: Configuration): Started {
  const { host, client_ca_file } = sectionOf(configuration, serviceSection);
  const { client_ca_file: kubernetesAuthorities } = sectionOf(configuration, kubernetesSection);
  const certificates = {
    everybody: client_ca_file !== undefined,
    kubernetes: kubernetesAuthorities !== undefined,
  };
  return { host, certificates, kubernetesAuthorities };
}

/** Protocols that require no credentials, at an address that others can reach. */
function unprotected(
  configuration: Configuration,
  host: string,
  certificates: CertificateRules,
): Omit<Problem, 'severity'>[] {
  const { allow_anonymous, keystone_auth } = sectionOf(configuration, serviceSection);
  if (allow_anonymous || isLoopback(host)) {
    return [];
  }
  const options = tokenOptionsOf(configuration);
  const isOpen = (name: ProtocolName) => {
    const { tokens, tokens_file }: TokenOptions = options[name];
    const asksForToken = tokens.length > 0 || tokens_file !== undefined;
    return !asksForCertificate(name, certificates) && !asksForToken && !(name === 'blazar' && keystone_auth);
  };
  return protocolsInUse(configuration)
    .filter(isOpen)
    .map((name) => {
      const { section, openTo, ownCertificates } = PROTOCOLS[name];
      const missing = `[${section}] tokens or tokens_file${ownCertificates ? ' or client_ca_file' : ''}${name === 'blazar' ? ' or keystone_auth' : ''}`;
      const message = `expected a loopback address, got ${host}, where everyone may ${openTo}: set ${missing}, or [service] allow_anonymous = true if that is intended`;
      return { section: 'service', option: 'host', message };
    });
}

/** Tokens of users or metrics that another protocol accepts too. Each section checks its own mistakes. */
function sharedTokens(configuration: Configuration): Problem[] {
  return mistakesOf(() => readProtocolTokens(configuration))
    .filter(({ option }) => /^(operator|reader|metrics)_tokens/.test(option))
    .map(asProblem);
}

function keystoneProblems(configuration: Configuration): Omit<Problem, 'severity'>[] {
  const { keystone_auth } = sectionOf(configuration, serviceSection);
  const message = 'expected an account in [keystone] with it, which validates the tokens of others';
  return keystone_auth && !isKeystoneSet(sectionOf(configuration, keystoneSection))
    ? [{ section: 'service', option: 'keystone_auth', message }]
    : [];
}

/** Certificates of API servers are distinguishable only if no other client is asked for one. */
function certificateProblems(configuration: Configuration): Omit<Problem, 'severity'>[] {
  const { tls_cert_file, client_ca_file } = sectionOf(configuration, serviceSection);
  const { client_ca_file: ofKubernetes } = sectionOf(configuration, kubernetesSection);
  const message =
    client_ca_file !== undefined
      ? 'expected no [service] client_ca_file with it: then every client shows a certificate, and those of API servers could not be told from others'
      : 'expected [service] tls_cert_file and tls_key_file with it: without TLS, clients cannot present a certificate';
  return ofKubernetes !== undefined && (client_ca_file !== undefined || tls_cert_file === undefined)
    ? [{ section: 'kubernetes', option: 'client_ca_file', message }]
    : [];
}

/** The protocols that are served. Blazar's always is. */
export function protocolsInUse(configuration: Configuration): ProtocolName[] {
  const { admin_policies } = sectionOf(configuration, skypilotSection);
  const isServed = {
    blazar: true,
    skypilot: admin_policies.length > 0,
    kubernetes: servesKubernetes(sectionOf(configuration, kubernetesSection)),
  };
  return PROTOCOL_NAMES.filter((name) => isServed[name]);
}
