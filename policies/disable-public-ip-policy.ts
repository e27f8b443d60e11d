import { AdminPolicy, MutatedUserRequest, PolicyRejected, type UserRequest } from '../src/skypilot/index.ts';

/** Gives machines on AWS no public IP address. They are reached through a VPC, so the request must name one. */
export class DisablePublicIpPolicy extends AdminPolicy {
  override validateAndMutate({ task, skypilotConfig }: UserRequest): MutatedUserRequest {
    // SkyPilot's documentation of admin policies omits the final `s`, and its schema then rejects the configuration.
    skypilotConfig.setNested(['aws', 'use_internal_ips'], true);
    // SkyPilot first had `vpc_name`, and later `vpc_names`, a string or a list.
    const names = ['vpc_name', 'vpc_names'].flatMap((key) => skypilotConfig.getNested(['aws', key]));
    if (!names.some((name) => typeof name === 'string' && name.trim() !== '')) {
      throw new PolicyRejected(
        'Machines on AWS get no public IP address here: set aws.vpc_name in ~/.sky/config.yaml to the VPC through which they are reached.',
      );
    }
    return new MutatedUserRequest(task, skypilotConfig);
  }
}
