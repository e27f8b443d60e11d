/** Checks that can prevent `serve` from starting, or a reload: across sections, of the ledger and the log folder. */

import { accessSync, constants, existsSync, realpathSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { isLoopback } from '../../base/addresses.ts';
import { ConfigurationError, errorText, LedgerUnavailableError, type Problem } from '../../base/errors.ts';
import { atOrigin } from '../../config/option-groups.ts';
import { systemErrorText, whyWritable } from '../../config/read-file.ts';
import type { StoredKind } from '../../decisions/store/queue.ts';
import { type Configuration, sectionOf } from '../../enforcement/configuration.ts';
import { hasReceiver, notificationsSection } from '../../enforcement/notifications/options.ts';
import { SYSTEM_CLOCK } from '../../filter/services.ts';
import { kubernetesSection, servesKubernetes } from '../../kubernetes/options.ts';
import { ledgerSection } from '../../ledger/options.ts';
import { parseConnection } from '../../ledger/storage/connection.ts';
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
import { oidcSection } from '../users/oidc-options.ts';
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

/**
 * For a valid configuration. Writes nothing. `ask`: whether to query the database for its tables, which may
 * take as long as `[ledger] timeout`; a service that starts does so anyway.
 */
export async function storageProblems(
  configuration: Configuration,
  { ask }: { readonly ask: boolean },
): Promise<Problem[]> {
  const problems = [
    ...(await ledgerProblems(configuration, ask)),
    ...logProblems(configuration),
    ...(await scatteredSessions(configuration)),
  ];
  return problems.map((problem) => atOrigin(problem, configuration.settings, { isSafe: true }));
}

async function ledgerProblems(configuration: Configuration, ask: boolean): Promise<Problem[]> {
  if (!(await usesLedger(configuration))) {
    return [];
  }
  const options = sectionOf(configuration, ledgerSection);
  const connection = parseConnection(options.connection);
  if (connection?.dialect === 'sqlite') {
    const reason = whyNoLedger(connection.file);
    if (reason !== undefined) {
      return [problem('error', 'ledger', 'connection', `${connection.file}: ${reason}`)];
    }
  }
  return ask ? askLedger(options) : [];
}

async function askLedger(
  options: Parameters<typeof import('../../ledger/open.ts').openLedger>[0],
): Promise<Problem[]> {
  const { openLedger } = await import('../../ledger/open.ts');
  try {
    const opened = openLedger(options, { clock: SYSTEM_CLOCK, observer: undefined });
    try {
      await opened.verify();
    } finally {
      await opened.ledger.close();
    }
    return [];
  } catch (thrown) {
    if (thrown instanceof ConfigurationError) {
      return [...thrown.problems];
    }
    if (thrown instanceof LedgerUnavailableError) {
      const message = `the ledger can not be reached now, and leases are refused until it can: ${errorText(thrown)}`;
      return [problem('warning', 'ledger', 'connection', message)];
    }
    throw thrown;
  }
}

/** SQLite creates further files in the folder, even if a link leads to the file. */
function whyNoLedger(file: string): string | undefined {
  const folder = dirname(existsSync(file) ? realpathSync(file) : file);
  return (
    whyNot(folder, constants.W_OK | constants.X_OK, `the folder ${folder}: `) ??
    (existsSync(file) ? (whyNot(file, constants.R_OK | constants.W_OK) ?? whyWritable(file)) : undefined)
  );
}

function logProblems(configuration: Configuration): Problem[] {
  const { decision_log: file } = sectionOf(configuration, serviceSection);
  if (file === undefined || file === '-') {
    return [];
  }
  const reason = whyNotAppendable(file);
  const message = `expected a file that can be written, got ${file} (${reason})`;
  return reason === undefined ? [] : [problem('error', 'service', 'decision_log', message)];
}

function whyNotAppendable(file: string): string | undefined {
  if (!existsSync(file)) {
    const folder = dirname(file);
    return whyNot(folder, constants.W_OK | constants.X_OK, `the folder ${folder}: `);
  }
  return statSync(file).isDirectory() ? 'it is a folder' : whyNot(file, constants.W_OK);
}

function whyNot(path: string, mode: number, prefix = ''): string | undefined {
  try {
    accessSync(path, mode);
    return undefined;
  } catch (thrown) {
    return `${prefix}${systemErrorText(thrown)}`;
  }
}

async function scatteredSessions(configuration: Configuration): Promise<Problem[]> {
  const options = sectionOf(configuration, serviceSection);
  const lists = ['operator_tokens', 'reader_tokens'] as const;
  const logsIn =
    options.keystone_auth ||
    lists.some((list) => options[list].length > 0 || options[`${list}_file`] !== undefined) ||
    sectionOf(configuration, oidcSection).issuer !== undefined;
  const message =
    'without a ledger, each process keeps its own sessions of the console, and the connections of a browser reach any of them, so users are logged out again and again: set decision_store, which makes the service use the database of [ledger], or serve the console from one process with a port of its own, without reuse_port';
  return options.reuse_port && logsIn && !(await usesLedger(configuration))
    ? [problem('warning', 'service', 'reuse_port', message)]
    : [];
}

function problem(severity: Problem['severity'], section: string, option: string, message: string): Problem {
  return { severity, section, option, message };
}

/** Whether anything uses the ledger: if so, its database is available for sessions, too. */
export async function usesLedger(configuration: Configuration): Promise<boolean> {
  return (
    filtersUseLedger(configuration) ||
    (await storedKind(configuration)) !== 'none' ||
    hasReceiver(sectionOf(configuration, notificationsSection)) ||
    (await policiesUseLedger(configuration))
  );
}

export function filtersUseLedger(configuration: Configuration): boolean {
  return configuration.filters.some(
    ({ installed: { filterClass }, options }) =>
      'claims' in filterClass.prototype || filterClass.needsLedger?.(options as never) === true,
  );
}

async function policiesUseLedger(configuration: Configuration): Promise<boolean> {
  const { admin_policies: specifiers } = sectionOf(configuration, skypilotSection);
  if (specifiers.length === 0) {
    return false;
  }
  const { loadPolicies } = await import('../../skypilot/policies/policy-loader.ts');
  const { policies } = await loadPolicies(specifiers, skypilotSection.section, []);
  return policies.some(({ policyClass }) => policyClass.needs?.includes('ledger') === true);
}

export async function storedKind(configuration: Configuration): Promise<StoredKind> {
  const { decision_store: kind } = sectionOf(configuration, serviceSection);
  if (kind !== undefined) {
    return kind;
  }
  const isUsed = filtersUseLedger(configuration) || (await policiesUseLedger(configuration));
  return isUsed ? 'refused' : 'none';
}
