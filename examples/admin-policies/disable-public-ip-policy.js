import { AdminPolicy, MutatedUserRequest, PolicyRejected } from 'blazar-enforcement/skypilot';

/** Gives machines on AWS no public address. They are then reached through a VPC, so one must be named. */
export class DisablePublicIpPolicy extends AdminPolicy {
  /** @param {import('blazar-enforcement/skypilot').UserRequest} userRequest */
  validateAndMutate({ task, skypilotConfig }) {
    // The documentation of admin policies leaves out the last letter, and SkyPilot's schema then refuses the whole.
    skypilotConfig.setNested(['aws', 'use_internal_ips'], true);
    // SkyPilot had the first for long, and later the second, a text or a list.
    const names = ['vpc_name', 'vpc_names'].flatMap((key) => skypilotConfig.getNested(['aws', key]));
    if (!names.some((name) => typeof name === 'string' && name.trim() !== '')) {
      throw new PolicyRejected(
        'Machines on AWS get no public IP address here: set aws.vpc_name in ~/.sky/config.yaml to the VPC in which they are reached.',
      );
    }
    return new MutatedUserRequest(task, skypilotConfig);
  }
}
