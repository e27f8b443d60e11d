/**
 * The tasks of a file, as SkyPilot reads it: one, or several documents of which the first may be a header. SkyPilot asks its
 * admin policy about each of them by itself. Source: SkyPilot 0.13, how it loads chains of tasks and groups of jobs.
 */

import { YamlDocument } from '../yaml/document.ts';
import { YamlError } from '../yaml/error.ts';
import { isMapping, type Mapping } from '../yaml/tree.ts';

/** One task of a file. */
export interface PipelineTask {
  /** As it is written; nothing but a task stands in it. */
  readonly document: YamlDocument;
  readonly value: Mapping;
  /** From 1; a header is no task. */
  readonly number: number;
  /** How many there are. */
  readonly of: number;
  /** `null` where it has none. */
  readonly name: string | null;
}

const isHeader = (first: Mapping, documents: number): boolean => {
  const names = Object.keys(first).sort().join();
  // In the header of a group of jobs SkyPilot ignores what it does not know.
  return names === 'name' || names === 'execution,name' || (documents > 1 && first.execution === 'parallel');
};

/** All tasks of a text, at least one. @throws YamlError for what is no YAML, and for a document that is no mapping. */
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
  // A header alone is a task without anything to do, and so is nothing at all.
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
