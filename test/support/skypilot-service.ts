/** A policy service for SkyPilot. */
import {
  type RunningPolicyService,
  runService,
  type ServiceAnswer,
  type ServiceOptions,
} from './running-service.ts';
import { body, policyFiles } from './skypilot.ts';

export const PATH = '/skypilot/admin-policy';

export interface SkypilotService extends RunningPolicyService {
  /** The folder of the policy files. */
  readonly folder: string;
  /** Sends a request with these members, or a body as is. */
  ask(request?: object | string, query?: string): Promise<ServiceAnswer>;
}

/** The service with policies: name → body of `validateAndMutate`. Default: no threads, no validation. */
export async function runSkypilot(
  policies: Readonly<Record<string, string>>,
  { skypilot, ...options }: Pick<ServiceOptions, 'service' | 'skypilot'> = {},
): Promise<SkypilotService> {
  const { folder, specifiers } = policyFiles(policies);
  const running = await runService({
    ...options,
    skypilot: { isolation: 'none', config_validation: 'ignore', admin_policies: specifiers, ...skypilot },
  });
  return {
    ...running,
    folder,
    ask: (request = {}, query = '') =>
      running.post(PATH + query, typeof request === 'string' ? request : body(request)),
  };
}
