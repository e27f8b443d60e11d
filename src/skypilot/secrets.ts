/**
 * Hides tokens, keys and passwords of tasks and configurations: by name, by form, and wherever the same value appears
 * again.
 */
import { YamlDocument } from '../yaml/document.ts';
import { YamlError } from '../yaml/error.ts';
import { isMapping, member, type Path, setMember, valueAt } from '../yaml/tree.ts';
import { HIDDEN, isSecretMember, isSecretVariable, withoutSecretForms } from './secret-forms.ts';

/** Shorter values are not secret, and hiding them would hide every `1` and `on`. */
const MIN_LENGTH = 4;
/** Minimum length of a line of a multi-line secret to be hidden by itself. */
const MIN_LINE = 8;
/** With more secrets, texts are hidden entirely: searching for each would take too long. */
const MAX_VALUES = 2000;

export class SecretValues {
  readonly #values = new Set<string>();
  /** Longest first, because one may contain another; `undefined` = not sorted yet. */
  #sorted: readonly string[] | undefined;

  /** Collects the secrets of tasks and configurations. */
  static of(...trees: readonly unknown[]): SecretValues {
    const secrets = new SecretValues();
    for (const tree of trees) {
      secrets.#shown(tree, '', isSecretMember);
    }
    return secrets;
  }

  /** A copy of a value without secrets. */
  withoutSecrets(tree: unknown): unknown {
    return this.#hideIn(this.#shown(tree, '', isSecretMember));
  }

  /** A text without secrets, such as a message. */
  hideIn(text: string): string {
    const shown = withoutSecretForms(text, (secret) => this.#add(secret));
    return this.hideKnown(shown);
  }

  /** The length of the longest secret so far, in characters. */
  get longest(): number {
    return this.#inOrder()[0]?.length ?? 0;
  }

  /** A text without the secrets that were collected so far. */
  hideKnown(text: string): string {
    if (this.#values.size > MAX_VALUES) {
      return text === '' ? text : HIDDEN;
    }
    let shown = text;
    for (const value of this.#inOrder()) {
      shown = shown.includes(value) ? shown.replaceAll(value, HIDDEN) : shown;
    }
    return shown;
  }

  /**
   * A copy of the value at a path of a task or configuration, without what its place or its form tells to be secret. Collects that: hide it
   * elsewhere, with `hideKnown`, after the last value.
   */
  shownAt(tree: unknown, path: Path): unknown {
    let value = tree;
    let place: Place = { name: '', isSecret: isSecretMember };
    for (const step of path) {
      if (place.name === 'secrets') {
        return this.#hidden(valueAt(tree, path));
      }
      if (isMapping(value)) {
        place = placeOf(String(step), place.name, member(value, 'name'));
      }
      value = valueAt(value, [step]);
    }
    return this.#shown(value, place.name, place.isSecret);
  }

  #inOrder(): readonly string[] {
    this.#sorted ??= [...this.#values].sort((a, b) => b.length - a.length);
    return this.#sorted;
  }

  #hideIn(shown: unknown): unknown {
    if (typeof shown === 'string') {
      return this.hideKnown(shown);
    }
    if (Array.isArray(shown)) {
      return shown.map((item) => this.#hideIn(item));
    }
    if (isMapping(shown)) {
      const copy: Record<string, unknown> = {};
      for (const [name, item] of Object.entries(shown)) {
        setMember(copy, name, this.#hideIn(item));
      }
      return copy;
    }
    return this.#values.has(String(shown)) ? HIDDEN : shown;
  }

  /** `isSecret` decides by the name of a member; in `envs` the names are variables. */
  #shown(value: unknown, name: string, isSecret: (name: string) => boolean): unknown {
    if (name === 'secrets') {
      return this.#hidden(value);
    }
    if (isMapping(value)) {
      const variable = member(value, 'name');
      const copy: Record<string, unknown> = {};
      for (const [key, item] of Object.entries(value)) {
        const place = placeOf(key, name, variable);
        setMember(copy, key, this.#shown(item, place.name, place.isSecret));
      }
      return copy;
    }
    if (Array.isArray(value)) {
      return value.map((item) => this.#shown(item, name, isSecret));
    }
    if (isSecret(name)) {
      return this.#hidden(value);
    }
    if (typeof value !== 'string') {
      return value;
    }
    return name === '_user_specified_yaml'
      ? this.#shownYaml(value)
      : withoutSecretForms(value, (secret) => this.#add(secret));
  }

  /** Hides all scalars in a value, except empty ones. */
  #hidden(value: unknown): unknown {
    if (Array.isArray(value)) {
      return value.map((item) => this.#hidden(item));
    }
    if (isMapping(value)) {
      const copy: Record<string, unknown> = {};
      for (const [below, item] of Object.entries(value)) {
        setMember(copy, below, this.#hidden(item));
      }
      return copy;
    }
    if (value === null || value === '' || typeof value === 'boolean') {
      return value;
    }
    this.#add(String(value));
    return HIDDEN;
  }

  /** SkyPilot stores the original YAML of the task, including its secrets, as a string in the task. */
  #shownYaml(text: string): string {
    try {
      return YamlDocument.parseStream(text)
        .map((document) => document.with(this.#shown(document.value, '', isSecretMember)).toString())
        .join('---\n');
    } catch (thrown) {
      if (thrown instanceof YamlError) {
        return HIDDEN;
      }
      throw thrown;
    }
  }

  #add(secret: string): void {
    const value = secret.trim();
    if (value.length < MIN_LENGTH || /^\$|^(?:true|false|null|none)$/i.test(value) || value === HIDDEN) {
      return;
    }
    // Forms that it may take in a message: JSON-escaped, URL-encoded, base64.
    const forms = [
      value,
      JSON.stringify(value).slice(1, -1),
      uriOf(value),
      Buffer.from(value).toString('base64'),
    ];
    this.#sorted = undefined;
    for (const form of forms) {
      this.#values.add(form);
    }
    const lines = value.includes('\n') ? value.split('\n').map((line) => line.trim()) : [];
    for (const line of lines.filter(({ length }) => length >= MIN_LINE)) {
      this.#values.add(line);
    }
  }
}

/** What decides whether a value is secret. */
interface Place {
  readonly name: string;
  readonly isSecret: (name: string) => boolean;
}

/** Of the member `key` of the mapping `within`, whose member `name` is `variable`. */
function placeOf(key: string, within: string, variable: unknown): Place {
  // Environment variables of a container: `name: HF_TOKEN`, `value: …`.
  return key === 'value' && typeof variable === 'string'
    ? { name: variable, isSecret: isSecretVariable }
    : { name: key, isSecret: within === 'envs' ? isSecretVariable : isSecretMember };
}

/** Half of a surrogate pair cannot be encoded. */
function uriOf(value: string): string {
  try {
    return encodeURIComponent(value);
  } catch {
    return value;
  }
}

/**
 * A copy of a value without secrets. Hides members with secret names, the `secrets` of a task, and secrets in texts.
 * Keeps the names of Kubernetes Secrets: `imagePullSecrets`, `secretName`.
 */
export function withoutSecrets(value: unknown): unknown {
  return SecretValues.of(value).withoutSecrets(value);
}
