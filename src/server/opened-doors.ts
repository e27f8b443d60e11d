import { DOOR_NAMES, DOORS, type DoorName, type Doors } from './doors.ts';
import type { Generation } from './generation.ts';
import { KUBERNETES_PATHS } from './own-paths.ts';

/** A protocol that is served, as the banner of `serve` shows it. */
export interface OpenedDoor {
  readonly name: DoorName;
  /** `Blazar` */
  readonly title: string;
  readonly urls: readonly string[];
  /** What clients must show, all of it. Empty = nothing. */
  readonly asks: readonly string[];
}

export function openedDoors(
  doors: Doors,
  { skypilot, kubernetes }: Generation,
  serviceUrl: string,
): OpenedDoor[] {
  const paths = {
    blazar: ['/v1/'],
    skypilot: skypilot.policies.isEmpty ? [] : [skypilot.options.path],
    kubernetes: kubernetes === undefined ? [] : Object.values(KUBERNETES_PATHS),
  };
  return DOOR_NAMES.filter((name) => paths[name].length > 0).map((name) => ({
    name,
    title: DOORS[name].title,
    urls: paths[name].map((path) => serviceUrl + path),
    asks: doors[name].asks,
  }));
}
