/** The policies of this package, for lists of policies and options. A service loads only those that it runs. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { classFileName } from '../../plugin/class-names.ts';
import { importFile } from '../../plugin/importing.ts';
import { isPolicyClass, type PolicyClass } from '../admin-policy.ts';
import { INCLUDED_EXTENSION, INCLUDED_FOLDER } from './policy-loader.ts';

/** A policy that `admin_policies` may name by its class alone. */
export interface IncludedPolicy {
  readonly file: string;
  readonly policyClass: PolicyClass;
}

/** Imports all included policies, sorted by file. @throws Error if one cannot be loaded */
export async function includedPolicies(): Promise<IncludedPolicy[]> {
  const suffix = `-policy${INCLUDED_EXTENSION}`;
  const files = readdirSync(INCLUDED_FOLDER)
    .filter((name) => name.endsWith(suffix))
    .sort();
  return Promise.all(files.map((name) => policyOfFile(name)));
}

async function policyOfFile(name: string): Promise<IncludedPolicy> {
  const file = join(INCLUDED_FOLDER, name);
  const stem = name.slice(0, -INCLUDED_EXTENSION.length);
  const found = Object.values(await importFile(file)).find(
    (exported) => isPolicyClass(exported) && classFileName(exported.name) === stem,
  );
  if (!isPolicyClass(found)) {
    throw new Error(`${file}: it exports no policy of that name`);
  }
  return { file, policyClass: found };
}
