import { z } from 'zod';
import {
  AdminPolicy,
  containerImage,
  imagesOf,
  isMapping,
  type Mapping,
  MutatedUserRequest,
  matchesPattern,
  needsOneOf,
  PolicyRejected,
  resourcesOf,
  sbatchOptionsOf,
  taskConfigsOf,
  type UserRequest,
} from '../src/skypilot/index.ts';

const options = z
  .object({
    allowed_images: z
      .array(z.string().regex(/^[^\s,]+$/))
      .default([])
      .meta({
        description:
          'The images that tasks may name. Those of containers start with docker: and the registry: docker:ghcr.io/ours/*; those of clouds are as image_id has them: ami-0abc, skypilot:*. * stands for any characters. Must be set.',
        expected: 'a comma-separated list of images such as docker:ghcr.io/ours/*',
      }),
    allowed_images_unnamed: z.enum(['allow', 'reject']).default('allow').meta({
      description:
        'What happens to a task that names no image. allow: it runs in the image of SkyPilot. reject: the user must name one.',
    }),
    allowed_images_run_options: z.array(z.string().min(1)).default([]).meta({
      description:
        'The options of docker.run_options that a configuration may have, each exactly as it is written there. An option of docker run can name another image.',
      expected: 'a comma-separated list of options such as --shm-size=2g',
    }),
  })
  .superRefine(needsOneOf('AllowedImagesPolicy', 'allowed_images'));

/** Members of a configuration that contain container images at some depth. */
const CONTAINERS = ['pod_config', 'create_instance_kwargs'];
/** Members of a configuration that are images of a cloud. */
const CLOUD_IMAGES = ['image_tag_general', 'image_tag_gpu'];
/** Options of sbatch that name an image or another container: of Slurm itself, and of its plugin Pyxis. Also shortened. */
const SBATCH_IMAGES = ['container-image', 'container-id', 'container-name'];
/** In the path of an image file, which Slurm takes too, it leads out of an allowed folder. No registry has such names. */
const UPWARDS = /(?:^|[/:])\.\.(?:\/|$)/;
/** SkyPilot's own machines, and requests that start none: they name no image. */
const WITHOUT_IMAGES = new Set(['exec', 'jobs.launch_controller', 'serve.launch_controller']);

/**
 * Limits the images of tasks: in every alternative, for every region, with the registry of the Docker login,
 * and in configurations, such as in pod_config. Images that a running task pulls are not checked.
 */
export class AllowedImagesPolicy extends AdminPolicy<z.infer<typeof options>> {
  static override readonly options = options;

  override validateAndMutate({ task, skypilotConfig, requestName }: UserRequest): MutatedUserRequest {
    const mustName = this.options.allowed_images_unnamed === 'reject' && !WITHOUT_IMAGES.has(requestName);
    for (const resources of resourcesOf(task)) {
      const images = imagesOf(resources, task);
      if (images.length === 0 && mustName) {
        throw this.#rejected('Tasks must name an image here.', 'resources.image_id');
      }
      this.#check(images, 'resources.image_id');
    }
    for (const config of [skypilotConfig.toDict(), ...taskConfigsOf(task).map((one) => one.config)]) {
      for (const [member, value] of membersOf(config, [...CONTAINERS, ...CLOUD_IMAGES])) {
        const images = CONTAINERS.includes(member) ? containerImagesOf(value) : [value];
        this.#check(images.map(textOf), member);
      }
      this.#checkRunOptions(config);
      for (const [, options] of membersOf(config, ['sbatch_options'])) {
        this.#checkSbatch(options);
      }
    }
    return new MutatedUserRequest(task, skypilotConfig);
  }

  #checkRunOptions({ docker }: Mapping): void {
    const given = isMapping(docker) ? (docker.run_options ?? []) : [];
    for (const option of [given].flat()) {
      if (typeof option !== 'string' || !this.options.allowed_images_run_options.includes(option)) {
        throw new PolicyRejected(`docker.run_options may not have ${String(option)} here.`);
      }
    }
  }

  #checkSbatch(options: unknown): void {
    for (const { given, name, value, isPlain } of sbatchOptionsOf(options)) {
      const isImage =
        name.length > 1 && SBATCH_IMAGES.some((option) => option.startsWith(name.toLowerCase()));
      // sbatch removes quotes and backslashes.
      if (!isPlain || (isImage && /["'\\]/.test(value))) {
        throw new PolicyRejected(`slurm.sbatch_options may not have ${given} here.`);
      }
      if (isImage) {
        this.#check([containerImage(value.trim())], 'resources.image_id');
      }
    }
  }

  #check(images: readonly string[], place: string): void {
    const { allowed_images: allowed } = this.options;
    const refused = images.find(
      (image) => UPWARDS.test(image) || !allowed.some((pattern) => matchesPattern(pattern, image)),
    );
    if (refused !== undefined) {
      throw this.#rejected(`The image ${refused} is not allowed here.`, place);
    }
  }

  #rejected(reason: string, place: string): PolicyRejected {
    return new PolicyRejected(`${reason} Set ${place} to one of: ${this.options.allowed_images.join(', ')}.`);
  }
}

/** The members with these names, at any depth. */
function membersOf(value: unknown, names: readonly string[]): [name: string, value: unknown][] {
  if (Array.isArray(value)) {
    return value.flatMap((item) => membersOf(item, names));
  }
  return isMapping(value)
    ? Object.entries(value).flatMap(([name, item]) =>
        names.includes(name) ? [[name, item] as [string, unknown]] : membersOf(item, names),
      )
    : [];
}

/** Images of all containers, of volumes (`image.reference`), and of templates, which choose an image. */
function containerImagesOf(value: unknown): unknown[] {
  return membersOf(value, ['image', 'template_hash_id', 'template_id']).map(([, item]) => {
    const image = isMapping(item) ? item.reference : item;
    return typeof image === 'string' ? containerImage(image.trim()) : image;
  });
}

function textOf(image: unknown): string {
  if (typeof image !== 'string') {
    throw new PolicyRejected('The configuration has an image that is not a text.');
  }
  return image;
}
