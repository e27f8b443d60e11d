import { posix } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import {
  AdminPolicy,
  infraOf,
  isMapping,
  isWorkspaceListed,
  type Mapping,
  MutatedUserRequest,
  needsOneOf,
  PolicyRejected,
  parseInfra,
  resourcesOf,
  type Task,
  type UserRequest,
  unknownClouds,
  unreadable,
} from '../src/skypilot/index.ts';

/** An absolute path, or one in the home folder, without `.`, `..`, empty parts and variables. */
const MOUNT_PATH = /^~?(?:\/(?!\.{1,2}(?:\/|$))[\w.@+-]+)+$/;
/** The name of a volume, perhaps with a folder in it. SkyPilot allows no `..` there. */
const VOLUME = /^[\w-][\w.-]*(?:\/(?!\.{1,2}(?:\/|$))[\w.-]+)*$/;

const options = z
  .object({
    add_volumes: z.record(z.string().regex(MOUNT_PATH), z.string().regex(VOLUME)).default({}).meta({
      description:
        'The volumes of every task, by mount path: the name of a volume of SkyPilot (sky volumes ls), perhaps with a folder in it, such as data/images. Must be set.',
      pairs: 'path:volume',
      expected: 'comma-separated path:volume pairs such as /mnt/data:shared or /mnt/images:shared/images',
    }),
    add_volumes_clouds: z
      .array(z.string().refine((name) => cloudNamed(name) !== undefined))
      .default([])
      .meta({
        description:
          'The clouds that have these volumes. Tasks for other clouds get none; tasks for some of both are refused. A task that names no cloud gets them, and SkyPilot then chooses one that has them. Empty = all tasks get them.',
        expected: 'a comma-separated list of clouds such as kubernetes or runpod',
      }),
    add_volumes_workspaces: z.array(z.string().min(1)).default([]).meta({
      description: 'The workspaces whose tasks get them. Empty = all.',
    }),
    add_volumes_existing: z.enum(['reject', 'keep']).default('reject').meta({
      description:
        'What happens to a task that mounts something else at the same path. reject: it is refused. keep: it keeps what it has.',
    }),
  })
  .superRefine(needsOneOf('AddVolumesPolicy', 'add_volumes'));

type Options = z.infer<typeof options>;

/** Controllers need no data, and a running cluster keeps its volumes. */
const OTHERS = ['jobs.launch_controller', 'serve.launch_controller', 'exec'];

/**
 * Adds volumes to tasks, unless SkyPilot's server has already resolved their volumes: it would ignore further
 * ones, and has called the policy before.
 */
export class AddVolumesPolicy extends AdminPolicy<Options> {
  static override readonly options = options;
  static override readonly check = ({ add_volumes_clouds: clouds }: Options) =>
    unknownClouds(clouds, 'add_volumes_clouds', 'most likely never applies');

  override validateAndMutate({ task, skypilotConfig, requestName }: UserRequest): MutatedUserRequest {
    const { add_volumes_workspaces: workspaces } = this.options;
    const isMeant = workspaces.length === 0 || isWorkspaceListed(skypilotConfig, workspaces);
    const isResolved = task.volume_mounts !== undefined && task.volume_mounts !== null;
    if (isMeant && !isResolved && !OTHERS.includes(requestName) && this.#isForItsClouds(task)) {
      this.#addTo(task);
    }
    return new MutatedUserRequest(task, skypilotConfig);
  }

  /** @throws PolicyRejected if only some alternatives are for a cloud with the volumes */
  #isForItsClouds(task: Task): boolean {
    const clouds = this.options.add_volumes_clouds.map(cloudNamed);
    if (clouds.length === 0) {
      return true;
    }
    const named = resourcesOf(task).map((resources) => infraOf(resources).cloud);
    const others = named.filter((cloud) => cloud !== null && !clouds.includes(cloud));
    if (others.length > 0 && others.length < named.length) {
      throw new PolicyRejected(
        `Tasks get volumes that only ${clouds.join(' and ')} can have. Name only such clouds as alternatives, or none of them, instead of ${[...new Set(others)].join(', ')} beside them.`,
      );
    }
    return others.length === 0;
  }

  #addTo(task: Task): void {
    const volumes = mappingOf(task.volumes, 'volumes');
    const mounts = { ...mappingOf(task.file_mounts, 'file_mounts'), ...volumes };
    const taken = new Map(Object.entries(mounts).map(([path, mounted]) => [normalized(path), mounted]));
    const missing = Object.entries(this.options.add_volumes).filter(([path, volume]) => {
      const mounted = taken.get(path);
      if (mounted === undefined || mounted === null) {
        return true;
      }
      if (this.options.add_volumes_existing === 'reject' && !isSame(mounted, volume)) {
        throw new PolicyRejected(
          `The volume ${volume} is mounted at ${path} in every task: mount something else at another path.`,
        );
      }
      return false;
    });
    if (missing.length > 0) {
      const added = missing.map(([path, volume]) => [path, mountOf(volume)]);
      task.volumes = { ...volumes, ...Object.fromEntries(added) };
    }
  }
}

function cloudNamed(name: string): string | undefined {
  try {
    const { cloud, region } = parseInfra(name);
    return region === null ? (cloud ?? undefined) : undefined;
  } catch {
    return undefined;
  }
}

function mappingOf(value: unknown, name: string): Mapping {
  if (!isMapping(value ?? {})) {
    throw unreadable(name, 'a mapping by mount path');
  }
  return (value ?? {}) as Mapping;
}

/** In the form of SkyPilot's `volumes`: a name, or a mapping with a folder. */
function mountOf(volume: string): unknown {
  const [name = '', ...folders] = volume.split('/');
  return folders.length === 0 ? name : { name, sub_path: folders.join('/') };
}

function isSame(mounted: unknown, volume: string): boolean {
  const wanted = mountOf(volume);
  return (
    isDeepStrictEqual(mounted, wanted) ||
    (isMapping(mounted) && isDeepStrictEqual({ ...mounted }, { name: wanted }))
  );
}

/** `/mnt//data/` and `/mnt/./data` are `/mnt/data`. */
function normalized(path: string): string {
  return posix.normalize(path.trim()).replace(/(?<=.)\/+$/, '');
}
