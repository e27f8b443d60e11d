/** Shared by the tests of SchedulingPolicyFilter: policies, roles and bindings, and leases as Blazar sends them. */
import { type CreateRequest, type Decision, type Reservation, UsageEnforcement } from '../../src/index.ts';
import { binding, clusterRole, schedulingPolicy, useOf } from '../peers/cluster-objects.ts';
import { confFile, temporaryFile } from '../support/files.ts';
import { type RecordingLogger, recordingLogger } from '../support/logger.ts';
import { createPhysicalHost } from '../support/requests.ts';

export const EVERYBODY = { kind: 'Group', name: 'system:authenticated' };

/** A role that may use the policy with its name, and a binding of the role. */
export function grantDocuments(policy: string, subject: object, bound: object = {}): object[] {
  return [clusterRole(policy, useOf(policy)), { ...binding(policy, policy, [subject]), ...bound }];
}

/** JSON is YAML. */
export function asYaml(documents: readonly object[]): string {
  return documents.map((document) => JSON.stringify(document)).join('\n---\n');
}

/** A file with policies that everyone may use: name → spec. */
export function policiesForAll(specs: Readonly<Record<string, object>>): string {
  const documents = Object.entries(specs).flatMap(([name, spec]) => [
    schedulingPolicy(name, spec),
    ...grantDocuments(name, EVERYBODY),
  ]);
  return temporaryFile('policies.yaml', asYaml(documents));
}

/** The filter as an operator enables it, in a blazar.conf. */
export function loadFilter(
  policies: string,
  options: Readonly<Record<string, string>> = {},
  logger: RecordingLogger = recordingLogger(),
): Promise<UsageEnforcement> {
  const lines = Object.entries({
    enabled_filters: 'SchedulingPolicyFilter',
    scheduling_policy_path: policies,
    ...options,
  }).map(([name, value]) => `${name} = ${value}\n`);
  const configFiles = [confFile(`[enforcement]\n${lines.join('')}`)];
  return UsageEnforcement.load({ environment: {}, configFiles }, { logger });
}

const chains = new Map<string, Promise<UsageEnforcement>>();

/** The filter with policies that everyone may use, by their specs. Loaded once for all leases of a test. */
export function filterFor(specs: Readonly<Record<string, object>>): Promise<UsageEnforcement> {
  const key = JSON.stringify(specs);
  const chain = chains.get(key) ?? loadFilter(policiesForAll(specs));
  chains.set(key, chain);
  return chain;
}

/** Two hosts for two days. Each of these reservations is merged over the captured one, which they replace. */
export function leaseOf(...reservations: Readonly<Record<string, unknown>>[]): CreateRequest {
  const { context, lease } = createPhysicalHost();
  const [captured] = lease.reservations ?? [];
  return { context, lease: { ...lease, reservations: reservations.map((one) => ({ ...captured, ...one })) } };
}

/** A lease with one reservation that has these properties. */
export function demanding(resource_properties: unknown, hypervisor_properties: unknown = ''): CreateRequest {
  return leaseOf({ resource_properties, hypervisor_properties });
}

export function equals(name: string, value: string): string {
  return JSON.stringify(['==', `$${name}`, value]);
}

/** The properties that the reservations of a decision's lease require. */
export function propertiesOf({ lease }: Decision): unknown[] {
  return (lease.reservations ?? []).map((reservation: Reservation) => reservation.resource_properties);
}

export const REJECTED = 'The lease does not fit the scheduling policies: ';
