/**
 * The values of `--config`: pairs such as `kubernetes.provision_timeout=600`, one per flag, or one file.
 * Source: SkyPilot docs, "Configuration Sources and Overrides", CLI flag.
 */
import { existsSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { YamlDocument } from '../base/yaml/document.ts';
import { YamlError } from '../base/yaml/tree.ts';

/** One `key=value`. */
export interface Pair {
  readonly path: readonly string[];
  readonly value: YamlDocument;
}

/** The pairs or file of the flags, and mistakes in them. Problems never contain a value: it may be a secret. */
type Dotlist =
  | { readonly file: string }
  | { readonly pairs: readonly Pair[]; readonly problems: readonly string[] };

/** Replaces a leading `~` by the home folder. */
export function expandHome(path: string, home: string = homedir()): string {
  return path === '~' || path.startsWith('~/') ? join(home, path.slice(2)) : path;
}

/**
 * Reads the values of `--config` in their order. If the first is the path of a file, it must be the only one.
 * Otherwise each is split at the first `=`, its key at the dots, and its value is read as YAML.
 */
export function readDotlist(texts: readonly string[], home?: string): Dotlist {
  const [first] = texts;
  const file = first === undefined ? undefined : expandHome(first, home);
  if (file !== undefined && existsSync(file) && !statSync(file).isDirectory()) {
    return texts.length === 1
      ? { file }
      : { pairs: [], problems: [`--config: ${file} is a file, and a file must be the only --config`] };
  }
  const pairs: Pair[] = [];
  const problems: string[] = [];
  for (const text of texts) {
    const pair = readPair(text);
    if (typeof pair === 'string') {
      problems.push(`--config: ${pair}`);
    } else {
      pairs.push(pair);
    }
  }
  return { pairs, problems };
}

function readPair(text: string): Pair | string {
  const equals = text.indexOf('=');
  if (equals === -1) {
    // Only characters that cannot belong to a secret value.
    const shown = /^[\w./~-]*/.exec(text)?.[0] ?? '';
    return `expected key=value or a file that exists, got "${shown}"`;
  }
  const key = text.slice(0, equals).trim();
  if (key === '') {
    return 'expected key=value, got nothing before "="';
  }
  // What follows a space or a colon was meant as a value.
  const shown = key.split(/[\s:]/, 1)[0];
  const path = key.split('.').map((name) => name.trim());
  if (path.includes('')) {
    return `expected names with one dot between them, got "${shown}"`;
  }
  const value = text.slice(equals + 1);
  if (value.trim() === '') {
    return `expected a value after "${shown}=", got none; write '' or null`;
  }
  try {
    return { path, value: YamlDocument.parse(value) };
  } catch (thrown) {
    if (thrown instanceof YamlError) {
      return `the value of ${shown} is not YAML (${thrown.reason}); put it in quotes`;
    }
    throw thrown;
  }
}
