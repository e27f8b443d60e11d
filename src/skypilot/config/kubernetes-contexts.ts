/** Reads Kubernetes contexts and their permitted users, from operator files or the response of a URL. */
import { readFile, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';

/** Larger than any real kubeconfig, and small enough to read for each request. */
export const MAX_CONTEXT_FILE_BYTES = 4_194_304;

const contexts = z.array(z.string().min(1));
const registrySchema = z.union([
  contexts.transform((everyones) => ({ users: {}, workspaces: {}, default: everyones })),
  z.strictObject({
    users: z.record(z.string(), contexts).default({}),
    workspaces: z.record(z.string(), contexts).default({}),
    default: contexts.default([]),
  }),
]);
const kubeconfigSchema = z.object({ contexts: z.array(z.object({ name: z.string() })).nullish() });

/** The permitted contexts of users and workspaces. */
export interface ContextRegistry {
  /** By id or name. */
  readonly users: Readonly<Record<string, readonly string[]>>;
  readonly workspaces: Readonly<Record<string, readonly string[]>>;
  readonly default: readonly string[];
}

/**
 * Reads a registry in YAML or JSON: a list of contexts for everyone, or a mapping with `users` (by id or
 * name), `workspaces` and `default`.
 *
 * @throws Error that contains nothing of the text
 */
export function contextRegistryOf(text: string): ContextRegistry {
  return parsed(registrySchema, text, 'the registry of Kubernetes contexts');
}

/** The names of the contexts in a kubeconfig. @throws Error that contains nothing of the text */
export function kubeconfigContextsOf(text: string): ReadonlySet<string> {
  const { contexts: found } = parsed(kubeconfigSchema, text, 'the kubeconfig');
  return new Set((found ?? []).map(({ name }) => name));
}

/** Reads a file of at most `MAX_CONTEXT_FILE_BYTES`. `~/` is the home folder. */
export async function textOfContextFile(path: string): Promise<string> {
  const file = path.startsWith('~/') ? join(homedir(), path.slice(2)) : path;
  if ((await stat(file)).size > MAX_CONTEXT_FILE_BYTES) {
    throw new Error(`${path}: expected at most ${MAX_CONTEXT_FILE_BYTES} bytes`);
  }
  return readFile(file, 'utf8');
}

/** The error contains nothing of the text, because a kubeconfig contains credentials. */
function parsed<Schema extends z.ZodType>(schema: Schema, text: string, name: string): z.infer<Schema> {
  try {
    // `silent` would also keep `yaml` from reporting errors.
    return schema.parse(parse(text, { logLevel: 'error' }));
  } catch {
    throw new Error(`${name} cannot be read: expected YAML or JSON of the documented form`);
  }
}
