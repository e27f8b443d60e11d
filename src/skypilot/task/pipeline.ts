/**
 * Splits a file into tasks like SkyPilot: one task, or several documents of which the first may be a header. SkyPilot
 * calls its admin policy for each task. Source: SkyPilot 0.13, loading of task chains and job groups.
 */

import { YamlDocument } from '../../yaml/document.ts';
import { YamlError } from '../../yaml/error.ts';
import { isMapping, type Mapping } from '../../yaml/tree.ts';

/** One task of a file. */
export interface PipelineTask {
  /** As written; contains only the task. */
  readonly document: YamlDocument;
  readonly value: Mapping;
  /** Starts at 1 and does not count the header. */
  readonly number: number;
  /** Total number of tasks. */
  readonly of: number;
  /** `null` if it has no name. */
  readonly name: string | null;
}

/** Whether the first of so many documents is a header, and no task. */
export function isHeader(first: Mapping, documents: number): boolean {
  const names = Object.keys(first).sort().join();
  // SkyPilot ignores unknown keys in the header of a job group.
  return names === 'name' || names === 'execution,name' || (documents > 1 && first.execution === 'parallel');
}

/** All tasks of a file, at least one. @throws YamlError for invalid YAML, and for a document that is not a mapping */
export function tasksOf(text: string): PipelineTask[] {
  const documents = YamlDocument.parseStream(text).map((document, index) => {
    const { value } = document;
    if (value !== null && !isMapping(value)) {
      throw new YamlError(`document ${index + 1}: expected a mapping`, document.lineOf([]));
    }
    return { document, value };
  });
  const [first, ...further] = documents;
  const withoutHeader =
    first?.value != null && further.length > 0 && isHeader(first.value, documents.length)
      ? further
      : documents;
  const tasks = withoutHeader.flatMap(({ document, value }) => (value === null ? [] : { document, value }));
  // An empty file, or one with only a header, is one empty task.
  const all = tasks.length > 0 ? tasks : [trivial(first)];
  return all.map(({ document, value }, index) => {
    const name = typeof value.name === 'string' ? value.name : null;
    return { document, value, number: index + 1, of: all.length, name };
  });
}

function trivial(
  first: { document: YamlDocument; value: Mapping | null } | undefined,
): Pick<PipelineTask, 'document' | 'value'> {
  const { document, value } = first ?? {};
  return document === undefined || value == null
    ? { document: YamlDocument.from({}), value: {} }
    : { document, value };
}

/** `task 2 of 3: train` */
export function headingOf({ number, of, name }: PipelineTask): string {
  return `task ${number} of ${of}${name === null ? '' : `: ${name}`}`;
}
