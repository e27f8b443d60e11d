/** The levels of a SkyPilot configuration, and what its sources look like. */
import { formatOrigin, type Origin } from '../../base/errors.ts';
import type { Mapping, Path } from '../../yaml/tree.ts';

/** Lowest precedence first. */
export const LEVELS = ['server', 'user', 'project', 'task', 'command line'] as const;
export type Level = (typeof LEVELS)[number];

/** The content of one source. A level may have several: each `--config key=value` is one. */
export interface Source {
  readonly level: Level;
  /** Shown in place of the level. */
  readonly name?: string;
  readonly tree: Mapping;
  /** The same with dates as SkyPilot reads them: `YamlDocument.typed`. Default: `tree`. */
  readonly typed?: Mapping;
  /** The file and line of the value at a path. */
  readonly originOf: (path: Path) => Origin;
}

/** The source and position of a value. */
export interface Place {
  readonly level: Level;
  readonly name?: string;
  readonly origin: Origin;
}

/** `user ~/.sky/config.yaml:3` */
export function formatPlace({ level, name = level, origin }: Place): string {
  const place = formatOrigin(origin);
  return origin.kind === 'command line' ? place : `${name} ${place}`;
}
