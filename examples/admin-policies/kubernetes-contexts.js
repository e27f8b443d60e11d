/** Reads the existing contexts, and who may use them, from files of the operator or the response of a URL. */
import { readFile, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';

/** Larger than any real kubeconfig, and small enough to read for each request. */
export const MAX_BYTES = 4_194_304;

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

/** @typedef {z.infer<typeof registrySchema>} Registry */

/**
 * Reads a registry in YAML or JSON: a list of contexts for everyone, or a mapping with `users` (by id or name),
 * `workspaces` and `default`.
 *
 * @param {string} text
 * @returns {Registry}
 */
export function registryOf(text) {
  return parsed(registrySchema, text, 'the registry of Kubernetes contexts');
}

/**
 * The names of the contexts in a kubeconfig.
 *
 * @param {string} text
 * @returns {ReadonlySet<string>}
 */
export function contextsOf(text) {
  const { contexts: found } = parsed(kubeconfigSchema, text, 'the kubeconfig');
  return new Set((found ?? []).map(({ name }) => name));
}

/**
 * Reads a file, up to a maximum size.
 *
 * @param {string} path `~/` is the home folder
 */
export async function textOfFile(path) {
  const file = path.startsWith('~/') ? join(homedir(), path.slice(2)) : path;
  if ((await stat(file)).size > MAX_BYTES) {
    throw new Error(`${path}: expected at most ${MAX_BYTES} bytes`);
  }
  return readFile(file, 'utf8');
}

/**
 * The error contains nothing of the text, because a kubeconfig holds credentials.
 *
 * @template {z.ZodType} Schema
 * @param {Schema} schema
 * @param {string} text
 * @param {string} name
 * @returns {z.infer<Schema>}
 */
function parsed(schema, text, name) {
  try {
    // `silent` would also keep `yaml` from reporting errors.
    return schema.parse(parse(text, { logLevel: 'error' }));
  } catch {
    throw new Error(`${name} cannot be read: expected YAML or JSON of the documented form`);
  }
}
