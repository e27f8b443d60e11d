/** What `skypilot config` prints. */

import type { UnreadFile } from '../../skypilot/config/config-sources.ts';
import type { MergedConfig } from '../../skypilot/config/layers.ts';
import type { PipelineTask } from '../../skypilot/task/pipeline.ts';
import { jsonText, onOneLine, printTable } from '../output.ts';

/** The merged configuration, for one task of a pipeline or alone. */
export interface Merged {
  readonly task: PipelineTask | null;
  readonly merged: MergedConfig;
}

export interface PrintFlags {
  readonly explain?: boolean;
  readonly showSecrets?: boolean;
  readonly format: 'yaml' | 'json';
}

export async function printConfig(
  all: readonly Merged[],
  unread: readonly UnreadFile[],
  flags: PrintFlags,
): Promise<void> {
  const { YamlDocument } = await import('../../yaml/document.ts');
  const { headingOf } = await import('../../skypilot/task/pipeline.ts');
  const isExplained = flags.explain === true;
  const shown = await Promise.all(
    all.map(async (one) => ({ ...one, ...(await shownOf(one.merged, unread, flags)) })),
  );
  if (flags.format === 'json') {
    const values = shown.map(({ task, tree, explained, dropped }) => {
      const config = isExplained ? [...explained, ...dropped] : tree;
      return task === null ? config : { task: task.number, of: task.of, name: task.name, config };
    });
    process.stdout.write(`${jsonText(shown.length === 1 ? values[0] : values, 2)}\n`);
    return;
  }
  for (const [index, { task, tree, explained, dropped }] of shown.entries()) {
    if (task !== null) {
      const heading = onOneLine(headingOf(task));
      process.stdout.write(isExplained ? `${index === 0 ? '' : '\n'}${heading}\n` : `--- # ${heading}\n`);
    }
    if (isExplained) {
      await printTable(
        ['KEY', 'VALUE', 'SOURCE', 'BEATS'],
        explained.map(({ key, value, source, beats }) => [key, jsonText(value), source, beats.join(', ')]),
      );
      if (dropped.length > 0) {
        process.stdout.write('\n');
        await printTable(
          ['DROPPED', 'SOURCE', 'WHY'],
          dropped.map(({ key, source, why }) => [key, source, why]),
        );
      }
    } else {
      process.stdout.write(YamlDocument.from(tree).toString());
    }
  }
}

async function shownOf(
  { tree, leaves, dropped }: MergedConfig,
  unread: readonly UnreadFile[],
  flags: PrintFlags,
) {
  const { formatPlace } = await import('../../skypilot/config/layers.ts');
  const { formatPath, valueAt } = await import('../../yaml/tree.ts');
  const { withoutSecrets } = await import('../../skypilot/secrets.ts');
  const shown = (flags.showSecrets === true ? tree : withoutSecrets(tree)) as typeof tree;
  const explained = leaves.map(({ path, source, beats }) => ({
    key: formatPath(path),
    value: valueAt(shown, path),
    source: formatPlace(source),
    beats: beats.map(formatPlace),
  }));
  const files = unread.map(({ level, file, message }) => ({
    key: '(the file)',
    source: `${level} ${file}`,
    dropped: 'file',
    why: message,
  }));
  const keys = dropped.map(({ key, place, reason, message }) => ({
    key,
    source: formatPlace(place),
    dropped: reason,
    why: message,
  }));
  return { tree: shown, explained, dropped: [...files, ...keys] };
}
