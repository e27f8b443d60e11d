/** Reads the images that a task names. Source: SkyPilot 0.13, `resources.image_id` and its Docker login. */
import { isMapping, member } from '../../base/yaml/tree.ts';
import { PolicyRejected } from '../admin-policy.ts';
import type { Task } from '../request/user-request.ts';
import { infraOf } from './infra.ts';
import type { Resources } from './resources.ts';

const DOCKER = 'docker:';
/** Clouds in which every image is a Docker image. */
const CONTAINER_CLOUDS = new Set(['kubernetes', 'ssh']);
/** Letters, digits and punctuation of image names: no blanks, quotes or shell characters. */
const READABLE = /^[A-Za-z0-9_./:@+=,~%#-]{1,1000}$/;
const SERVER = 'SKYPILOT_DOCKER_SERVER';

/**
 * The images of one alternative, each once: containers as `docker:registry/name:tag`, images of a cloud
 * unchanged. If SkyPilot may read a name either way, or complete it with the registry of the task, both are
 * returned.
 *
 * @throws PolicyRejected for a form that SkyPilot does not accept
 */
export function imagesOf(resources: Resources, task: Task): string[] {
  const { image_id: given } = resources;
  const named = isMapping(given)
    ? Object.entries(given)
    : given === undefined || given === null
      ? []
      : [['', given]];
  const servers = serversOf(resources, task);
  const images = named.flatMap(([key, value]) => {
    const text = typeof value === 'string' ? value.trim() : '';
    if (!READABLE.test(text)) {
      throw new PolicyRejected(
        'resources.image_id: expected an image such as docker:registry/name:tag, or a mapping from regions to images.',
      );
    }
    return readingsOf(text, key === 'docker', resources).flatMap((image) => withServers(image, servers));
  });
  return [...new Set(images)];
}

function readingsOf(text: string, isDocker: boolean, resources: Resources): string[] {
  if (isDocker || text.startsWith(DOCKER)) {
    return [containerImage(text)];
  }
  const { cloud } = infraOf(resources);
  if (cloud !== null) {
    return [CONTAINER_CLOUDS.has(cloud) ? containerImage(text) : text];
  }
  return [containerImage(text), text];
}

/** The name of a container image, with the prefix `docker:`. */
export function containerImage(text: string): string {
  return text.startsWith(DOCKER) ? text : `${DOCKER}${text}`;
}

/** SkyPilot adds the server of a complete Docker login to names that do not start with it. */
function withServers(image: string, servers: readonly string[]): string[] {
  const completed = servers
    .filter((server) => image.startsWith(DOCKER) && !image.startsWith(`${DOCKER}${server}/`))
    .map((server) => `${DOCKER}${server}/${image.slice(DOCKER.length)}`);
  return [image, ...completed];
}

function serversOf(
  { _docker_login_config: login }: Resources,
  { envs, secrets, managed_secrets }: Task,
): string[] {
  if (JSON.stringify(managed_secrets ?? null).includes(SERVER)) {
    throw new PolicyRejected(
      `managed_secrets: expected ${SERVER} among envs or secrets, where it is visible.`,
    );
  }
  const given = [
    isMapping(login) ? member(login, 'server') : undefined,
    ...[envs, secrets].map((values) => (isMapping(values) ? member(values, SERVER) : undefined)),
  ];
  return given
    .filter((server) => server !== undefined && server !== null && server !== '')
    .map((server) => {
      if (typeof server !== 'string' || !READABLE.test(server)) {
        throw new PolicyRejected(`${SERVER}: expected the name of a registry.`);
      }
      return server;
    });
}
