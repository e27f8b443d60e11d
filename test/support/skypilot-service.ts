/** A policy service that SkyPilot asks. */
import {
  type RunningPolicyService,
  runService,
  type ServiceAnswer,
  type ServiceOptions,
} from './running-service.ts';
import { body, policyFiles } from './skypilot.ts';

export const PATH = '/skypilot/admin-policy';

export interface SkypilotService extends RunningPolicyService {
  /** Where the files of the policies are. */
  readonly folder: string;
  /** Sends a request with these members, or a body as it is. */
  ask(request?: object | string, query?: string): Promise<ServiceAnswer>;
}

/** The service with these policies: name → body of `validateAndMutate`. Without threads and validation unless `skypilot` says otherwise. */
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
