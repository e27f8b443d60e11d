/** Which contexts there are, and which of them belong to whom: files of an operator's, and what a URL answers. */
import { readFile, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';

/** More than the largest kubeconfig, and little enough to be read for each request. */
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
 * A registry in YAML or JSON: a list of contexts, which are everyone's; or a mapping with `users` (by id or name),
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
 * The text of a file, which must not be too large.
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
 * Nothing of the text stands in the error: a kubeconfig holds credentials.
 *
 * @template {z.ZodType} Schema
 * @param {Schema} schema
 * @param {string} text
 * @param {string} name
 * @returns {z.infer<Schema>}
 */
function parsed(schema, text, name) {
  try {
    // Quieter still, and `yaml` would keep its errors to itself too.
    return schema.parse(parse(text, { logLevel: 'error' }));
  } catch {
    throw new Error(`${name} cannot be read: expected YAML or JSON of its form`);
  }
}
