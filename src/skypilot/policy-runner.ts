/** Runs a policy in its own thread or in process. */

import { schemaInput } from '../config/resolve.ts';
import type { Deadline } from '../deadline.ts';
import { type Configuration, sectionOf } from '../enforcement/configuration.ts';
import { createSharedServices, type EnforcementServices } from '../enforcement/services.ts';
import { createLogger } from '../logger.ts';
import { type Answer, callPolicy, type Question } from './call-policy.ts';
import { skypilotSection } from './options.ts';
import type { NamedPolicy } from './policy-loader.ts';

/** A running policy. Handles any number of questions at a time. */
export interface PolicyRunner {
  readonly name: string;
  /** @throws any error of the policy other than a rejection; may ignore the deadline */
  ask(question: Question, deadline: Deadline): Answer | Promise<Answer>;
  /** Closes the policy. @throws the error of the policy, if any */
  close(): Promise<void>;
}

/** Constructs a policy of a valid configuration. @throws the error of the policy, if any */
export async function startPolicy(
  named: NamedPolicy,
  configuration: Configuration,
  services: EnforcementServices,
): Promise<PolicyRunner> {
  return sectionOf(configuration, skypilotSection).isolation === 'worker'
    ? startInThread(named, configuration, services)
    : startInProcess(named, configuration, services);
}

async function startInThread(
  { specifier, policyClass: { name, options } }: NamedPolicy,
  configuration: Configuration,
  { logger = createLogger(), httpObserver }: EnforcementServices,
): Promise<PolicyRunner> {
  const { IsolatedPolicy } = await import('./isolated-policy.ts');
  const own = configuration.settings.filter(({ option }) => option.section === skypilotSection.section);
  const values = schemaInput(own, new Set(Object.keys(options.shape)));
  const policy = await IsolatedPolicy.start(name, { specifier, values }, { logger, httpObserver });
  return {
    name,
    ask: (question, deadline) => policy.ask(question, deadline),
    async close() {
      const cause = await policy.close();
      if (cause !== undefined) {
        throw new Error(cause);
      }
    },
  };
}

function startInProcess(
  { policyClass }: NamedPolicy,
  configuration: Configuration,
  services: EnforcementServices,
): PolicyRunner {
  const { section } = skypilotSection;
  const options = sectionOf(configuration, { section, schema: policyClass.options });
  const policy = new policyClass(options as never, createSharedServices(services));
  return {
    name: policyClass.name,
    ask: (question, deadline) => callPolicy(policy, question, deadline),
    close: async () => policy.close(),
  };
}
