import { formatProblem } from '../../../src/base/errors.ts';
import { YamlDocument } from '../../../src/base/yaml/document.ts';
import { isMapping, type Path } from '../../../src/base/yaml/tree.ts';
import type { validateConfig } from '../../../src/skypilot/schema/validate.ts';

/** The problems of the YAML in a file with this name. */
export function problemsIn(validate: typeof validateConfig, file: string, yaml: string): string[] {
  const document = YamlDocument.parse(yaml);
  const { typed: value } = document;
  const originOf = (path: Path) => ({ kind: 'file', file, line: document.lineOf(path) }) as const;
  return validate(isMapping(value) ? value : {}, originOf).map(formatProblem);
}
