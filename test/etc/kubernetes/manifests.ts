/** The manifests of etc/kubernetes. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { projectFile } from '../../support/files.ts';

export const FOLDER = projectFile('etc/kubernetes');

/** An object of Kubernetes. Each test looks at other fields. */
// biome-ignore lint/suspicious/noExplicitAny: the fields of a manifest are not known to the types; a test that reads a wrong one fails.
export type Manifest = any;

/** Only for services with rules. */
export const RULES_MANIFEST = 'rules-webhook-configuration.yaml';

/** The names of all manifests that everybody applies. */
export const MANIFESTS = readdirSync(FOLDER).filter(
  (name) => name.endsWith('.yaml') && name !== 'kustomization.yaml' && name !== RULES_MANIFEST,
);

/** The objects in some of its files, or in all. */
export function manifests(...names: string[]): Manifest[] {
  return (names.length === 0 ? MANIFESTS : names).flatMap((name) =>
    parse(readFileSync(join(FOLDER, name), 'utf8')),
  );
}

/** @throws the mistakes of invalid YAML. */
export function parse(text: string): Manifest[] {
  return parseAllDocuments(text).map((document) => {
    if (document.errors.length > 0) {
      throw new AggregateError(document.errors);
    }
    return document.toJS();
  });
}

/** The only object of a kind. */
export function only(objects: readonly Manifest[], kind: string): Manifest {
  const [found, ...others] = objects.filter((one) => one.kind === kind);
  if (found === undefined || others.length > 0) {
    throw new Error(`expected one ${kind}, found ${found === undefined ? 0 : others.length + 1}`);
  }
  return found;
}
