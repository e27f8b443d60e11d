import { z } from 'zod';
import {
  AdminPolicy,
  AllowedInfra,
  expandResources,
  type Infra,
  infraOf,
  MutatedUserRequest,
  needsOneOf,
  type PolicyServices,
  parseInfra,
  type Resources,
  type UserRequest,
  unknownClouds,
} from '../src/skypilot/index.ts';

/** A cloud with an optional region and zone, or a context with slashes. A cloud alone is no pattern. */
const INFRA = /^[A-Za-z0-9]+(?:\/[^\s,/]+)*$/;

const options = z
  .object({
    allowed_clouds: z.array(z.string().regex(INFRA)).default([]).meta({
      description:
        'Where tasks may run, as infra has it: aws, aws/us-east-1, k8s/my-context, slurm/cluster/partition. * in the name of a region, context or zone stands for any characters. Must be set.',
      expected: 'a comma-separated list of clouds such as aws/us-east-1 or k8s/my-context',
    }),
    allowed_clouds_unnamed: z.enum(['restrict', 'reject']).default('restrict').meta({
      description:
        'What happens to a task that does not name where to run, or not precisely. restrict: every allowed place becomes an alternative. reject: the user must name one.',
    }),
  })
  .superRefine(needsOneOf('AllowedCloudsPolicy', 'allowed_clouds'))
  .superRefine((values, check) => {
    for (const entry of values.allowed_clouds) {
      try {
        parseInfra(entry);
      } catch {
        const message = `expected a cloud such as aws/us-east-1 or k8s/my-context, got ${entry}`;
        check.addIssue({ code: 'custom', path: ['allowed_clouds'], message });
      }
    }
  });

/**
 * Limits where tasks may run. Every alternative must name an allowed place, in any spelling; one that names
 * none is limited to the allowed places. Buckets and existing clusters are not checked.
 */
export class AllowedCloudsPolicy extends AdminPolicy<z.infer<typeof options>> {
  static override readonly options = options;
  static override readonly check = ({ allowed_clouds: entries }: z.infer<typeof options>) =>
    unknownClouds(entries, 'allowed_clouds', 'would make SkyPilot refuse tasks that are restricted to it');

  readonly #allowed: AllowedInfra;

  constructor(values: z.infer<typeof options>, services: PolicyServices) {
    super(values, services);
    this.#allowed = new AllowedInfra(values.allowed_clouds);
  }

  override validateAndMutate({ task, skypilotConfig, requestName }: UserRequest): MutatedUserRequest {
    const isExec = requestName === 'exec';
    const mayNarrow = this.options.allowed_clouds_unnamed === 'restrict';
    expandResources(task, (resources) => {
      const asked = infraOf(resources);
      const isTied = mayNarrow && isOfOneCloud(resources, asked) && this.#allowed.cloudsFor(asked) > 1;
      return this.#allowed.changesFor(asked, {
        isExec,
        narrows: mayNarrow && !isTied,
        unnamed: isTied ? UNNAMED_CLOUD : 'Tasks must name where they run here.',
      });
    });
    return new MutatedUserRequest(task, skypilotConfig);
  }
}

const UNNAMED_CLOUD =
  'Tasks that name a region, an instance type, a local disk or the disk tier ultra must name their cloud here.';

/** Whether an alternative names what other clouds most likely lack: SkyPilot would refuse the whole task for one. */
function isOfOneCloud(
  { instance_type: type, local_disk: disk, disk_tier: tier }: Resources,
  { region, zone }: Infra,
): boolean {
  return (
    [region, zone, type ?? null, disk ?? null].some((name) => name !== null) || /^ultra$/i.test(String(tier))
  );
}
