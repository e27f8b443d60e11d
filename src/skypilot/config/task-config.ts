/** Reads the configuration in a SkyPilot task: `config`, its old name, and what SkyPilot turns them into. */
import { isDeepStrictEqual } from 'node:util';
import type { Problem } from '../../errors.ts';
import { formatPath, isMapping, type Mapping, type Path, valueAt } from '../../yaml/tree.ts';
import type { Source } from './levels.ts';

/** The configuration in a task, and problems with it. */
export interface TaskConfig {
  readonly tree: Mapping;
  /** Its path in the task. */
  readonly at: Path;
  readonly problems: readonly Problem[];
}

interface Written {
  readonly path: Path;
  /** `undefined` if missing or null. */
  readonly tree: unknown;
}

/**
 * Reads `config`, its old name `experimental.config_overrides`, or what SkyPilot turned them into within `resources`. The
 * lifecycle hooks in `config` are no configuration.
 */
export function taskConfig(task: Mapping, originOf: Source['originOf']): TaskConfig {
  const problems: Problem[] = [];
  const report = (severity: Problem['severity'], path: Path, message: string) =>
    problems.push({ severity, origin: originOf(path), message: `${formatPath(path)}: ${message}` });

  const { experimental = null } = task;
  if (isMapping(experimental)) {
    for (const name of Object.keys(experimental).filter((one) => one !== 'config_overrides')) {
      report('error', ['experimental', name], 'expected only config_overrides here');
    }
  } else if (experimental !== null) {
    report('error', ['experimental'], 'expected a mapping');
  }

  const own = withoutHooks(written(task, ['config']));
  const old = written(task, ['experimental', 'config_overrides']);
  const [made = written(task, MADE), ...others] = madeBySkyPilot(task);
  if (old.tree !== undefined) {
    const message = own.tree === undefined ? 'deprecated: use config' : 'ignored, because config is set';
    report('warning', old.path, message);
  }
  const chosen = own.tree === undefined ? old : own;
  for (const one of [made, ...others]) {
    if (chosen.tree !== undefined && one.tree !== undefined) {
      report('error', one.path, `cannot be combined with ${formatPath(chosen.path)}`);
    } else if (!isDeepStrictEqual(one.tree ?? {}, made.tree ?? {})) {
      const message = `expected the same as in ${formatPath(made.path)}: give each alternative a task of its own`;
      report('error', one.path, message);
    }
  }
  const { path: at, tree = {} } = chosen.tree === undefined ? made : chosen;
  if (!isMapping(tree)) {
    report('error', at, 'expected a mapping');
    return { tree: {}, at, problems };
  }
  return { tree, at, problems };
}

const MADE = ['resources', '_cluster_config_overrides'] as const;

/** Of each alternative, which may have its own in place of that of all. */
function madeBySkyPilot(task: Mapping): Written[] {
  const ofAll = written(task, MADE);
  const alternatives = ['any_of', 'ordered'].flatMap((name) => {
    const list = valueAt(task, ['resources', name]);
    return Array.isArray(list)
      ? list.map((_, index) => written(task, ['resources', name, index, MADE[1]]))
      : [];
  });
  return alternatives.length === 0
    ? [ofAll]
    : alternatives.map((one) => (one.tree === undefined ? ofAll : one));
}

function written(task: Mapping, path: Path): Written {
  return { path, tree: valueAt(task, path) ?? undefined };
}

function withoutHooks({ path, tree }: Written): Written {
  if (!isMapping(tree)) {
    return { path, tree };
  }
  const { hooks: _, ...rest } = tree;
  return { path, tree: rest };
}
