/** Runs a policy in its own thread or in process. */

import type { Deadline } from '../../base/deadline.ts';
import { createLogger } from '../../base/logger.ts';
import { schemaInput } from '../../config/resolve.ts';
import { type Configuration, sectionOf } from '../../enforcement/configuration.ts';
import { createSharedServices, type EnforcementServices } from '../../enforcement/services.ts';
import type { RuleObserver } from '../../filter/services.ts';
import type { AdminPolicy } from '../admin-policy.ts';
import type { LaunchLedger } from '../charging/contract.ts';
import type { SkypilotOptions } from '../options.ts';
import { skypilotSection } from '../section.ts';
import { type Answer, callPolicy, type Question } from './call-policy.ts';
import type { Trial } from './isolation/thread-messages.ts';
import type { NamedPolicy } from './policy-loader.ts';

/** A running policy. Handles any number of questions at a time. */
export interface PolicyRunner {
  readonly name: string;
  /** @throws any error of the policy except a rejection; may ignore the deadline */
  ask(question: Question, deadline: Deadline): Answer | Promise<Answer>;
  /** Closes the policy. @throws the error of the policy, if any */
  close(): Promise<void>;
}

/** The dependencies of policies. Each has a default. */
export interface PolicyRunnerServices extends EnforcementServices {
  readonly launches?: LaunchLedger | undefined;
  /** For `skypilot test`; policies must run in threads. */
  readonly trial?: Trial | undefined;
  /** With `trial`: receives the outcomes of rules. */
  readonly ruleObserver?: RuleObserver | undefined;
}

/** Constructs a policy of a valid configuration. @throws the error of the policy, if any */
export async function startPolicy(
  named: NamedPolicy,
  configuration: Configuration,
  services: PolicyRunnerServices,
): Promise<PolicyRunner> {
  return isIsolated(named, sectionOf(configuration, skypilotSection).isolation)
    ? startInThread(named, configuration, services)
    : startInProcess(named, configuration, services);
}

/** Whether the policy runs in a thread. @throws Error if it has needs and is not included */
export function isIsolated(named: NamedPolicy, isolation: SkypilotOptions['isolation']): boolean {
  const isIncluded = !named.specifier.includes('#');
  const { needs = [] } = named.policyClass;
  if (needs.length > 0 && !isIncluded) {
    throw new Error('only included policies may name what they need: it would run in the process');
  }
  if (isolation === 'none' || needs.includes('ledger')) {
    return false;
  }
  return isolation === 'worker' || !isIncluded || needs.includes('thread');
}

async function startInThread(
  { specifier, policyClass: { name, options } }: NamedPolicy,
  configuration: Configuration,
  { logger = createLogger(), httpObserver, trial, ruleObserver }: PolicyRunnerServices,
): Promise<PolicyRunner> {
  const { IsolatedPolicy } = await import('./isolation/isolated-policy.ts');
  const own = configuration.settings.filter(({ option }) => option.section === skypilotSection.section);
  const values = schemaInput(own, new Set(Object.keys(options.shape)));
  return IsolatedPolicy.start(name, { specifier, values, trial }, { logger, httpObserver, ruleObserver });
}

async function startInProcess(
  named: NamedPolicy,
  configuration: Configuration,
  services: PolicyRunnerServices,
): Promise<PolicyRunner> {
  const { section } = skypilotSection;
  const { policyClass } = named;
  const options = sectionOf(configuration, { section, schema: policyClass.options });
  const policy = new policyClass(options as never, {
    ...createSharedServices(services),
    ...(policyClass.needs?.includes('ledger') && { launches: services.launches }),
  });
  // Policies of older versions of the package have no `open`.
  await (policy.open as AdminPolicy['open'] | undefined)?.call(policy);
  return {
    name: policyClass.name,
    ask: (question, deadline) => callPolicy(policy, question, deadline),
    close: async () => policy.close(),
  };
}
